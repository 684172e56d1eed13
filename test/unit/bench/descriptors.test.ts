import { createSocket } from 'node:dgram'
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { openOf, stillOpen } from '../../../bench/descriptors.ts'
import t from '../../support/harness/index.ts'

t.test('finds leaked descriptors by process and kind', async t => {
  const folder = t.testdir({ run: { 'media.pid': `${process.pid}\n` } })
  const rest = openOf(folder)
  t.same(Object.keys(rest), ['media'], 'a process without a pid file is omitted')
  t.same(stillOpen(rest, openOf(folder), 0), [])
  const files = Array.from({ length: 20 }, () => openSync(folder, 'r'))
  const sockets = Array.from({ length: 20 }, () => createSocket('udp4'))
  t.teardown(() => {
    for (const file of files) closeSync(file)
    for (const socket of sockets) socket.close()
  })
  await Promise.all(sockets.map(socket => new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve))))
  const before = rest.media?.open ?? {}
  const said = (kind: string) => `media has ${(before[kind] ?? 0) + 20} of ${kind} open, ${before[kind] ?? 0} at rest`
  t.same(new Set(stillOpen(rest, openOf(folder), 0)), new Set([said('file'), said('udp')]))
  t.same(stillOpen(rest, openOf(folder), 10), [said('file')], 'ports in use or in quarantine are not leaks')
  mkdirSync(`${folder}/other/run`, { recursive: true })
  writeFileSync(`${folder}/other/run/media.pid`, String(process.ppid))
  t.same(
    stillOpen(openOf(`${folder}/other`), openOf(folder), 0),
    [],
    'does not compare with the baseline of another process',
  )
})
