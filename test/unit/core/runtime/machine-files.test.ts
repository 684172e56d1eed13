import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import pino from 'pino'
import { MachineFiles, serveFiles } from '../../../../core/runtime/machine-files.ts'
import t from '../../../support/harness/index.ts'
import { freePort } from '../../../support/ports.ts'

// The files that machines read from each other, over a real socket.

const KEY = randomBytes(32)

t.test('a machine reads recordings and exports of another one, and nothing else', async t => {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-files-'))
  t.teardown(() => rmSync(data_dir, { recursive: true, force: true }))
  for (const folder of ['recordings/2026/11', 'recordings/.sounds', 'exports', 'runs'])
    mkdirSync(join(data_dir, folder), { recursive: true })
  const content = randomBytes(2_500_000)
  writeFileSync(join(data_dir, 'recordings/2026/11/RE1.wav.sealed'), content)
  for (const secret of ['master.key', 'recordings/.sounds/node_1.1.wav'])
    writeFileSync(join(data_dir, secret), 'secret')
  symlinkSync(join(data_dir, 'master.key'), join(data_dir, 'exports/exp_1.csv'))
  const at = { host: '127.0.0.1', port: await freePort() }
  const server = await serveFiles(at, { key: KEY, data_dir, log: pino({ level: 'silent' }) })
  t.teardown(() => server.close())
  // The edge has the port before.
  const edge = { ...at, port: at.port - 1 }
  const machines = (key: Buffer, found: typeof edge | undefined = edge) => {
    const files = new MachineFiles('mac_1', key, () => Promise.resolve(found))
    t.teardown(() => files.close())
    return files
  }
  const files = machines(KEY)
  const file = 'recordings/2026/11/RE1.wav.sealed'
  t.equal(await files.size('mac_2', file), content.length)
  const read: Buffer[] = []
  for await (const part of files.read('mac_2', file, 10, content.length - 1)) read.push(part)
  t.ok(Buffer.concat(read).equals(content.subarray(10)), 'a part of it, byte for byte')
  t.ok((await files.source('mac_2', file).read(1_000_000, 70_000)).equals(content.subarray(1_000_000, 1_070_000)))
  writeFileSync(join(data_dir, 'runs/CA1-1.jsonl'), '{"a":1}\n')
  t.equal(String(await files.whole('mac_2', 'runs/CA1-1.jsonl')), '{"a":1}\n', 'the log of a run')
  t.equal(await files.whole('mac_2', 'runs/CA2-1.jsonl'), null, 'another call has none there')
  await t.rejects(files.source('mac_2', file).read(content.length - 5, 10), /ended early/)
  await t.rejects(files.size('mac_2', 'recordings/RE2.wav'), { missing: true, message: /127\.0\.0\.1 does not have/ })
  for (const secret of [
    'master.key',
    'recordings/../master.key',
    'recordings/%2e%2e/master.key',
    'recordings/.sounds/node_1.1.wav',
    'exports/exp_1.csv',
    'exports',
  ])
    await t.rejects(files.size('mac_2', secret), { missing: false }, secret)
  await t.rejects(files.source('mac_2', file).read(0, 8_000_000), { missing: false }, 'too much at once')

  await t.rejects(machines(randomBytes(32)).size('mac_2', file), /127\.0\.0\.1, which has the file, does not answer/)
  const stranger = connect({ ...at, rejectUnauthorized: false })
  t.teardown(() => stranger.destroy())
  const ended = new Promise<string>(resolve => {
    stranger.on('error', ({ message }) => resolve(message))
    stranger.on('secureConnect', () => resolve('let in'))
  })
  t.not(await ended, 'let in', 'who has no key of ours is not let in')
  const unlinked = new MachineFiles('mac_1', KEY, () => Promise.resolve(undefined))
  await t.rejects(unlinked.size('mac_3', file), /has no STROWGER_LINK/)
})
