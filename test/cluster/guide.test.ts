import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { makeNewerRelease } from '../../bench/newer-release.ts'
import { TREE } from '../../core/runtime/tree.ts'
import { openState } from '../../core/state/index.ts'
import { wasDecided } from '../support/busy.ts'
import t, { type Test } from '../support/harness/index.ts'
import { startPlatform } from '../support/platform.ts'
import { freeBlock, freePort, freeRow } from '../support/ports.ts'
import { postgres } from '../support/postgres.ts'
import { refusal } from '../support/refusal.ts'
import { openSoftphone } from '../support/softphone.ts'
import { until } from '../support/wait.ts'
import { RTP_PORTS, world } from '../support/world.ts'

// The commands of docs/several-machines.md, as they stand there: an installation on SQLite moves to PostgreSQL, a
// second machine joins it, and both are upgraded to a newer release one by one. Calls go on all the while, and none is
// cut.

const PAGE = 'docs/several-machines.md'
const CALLED = '+2348030004711'
const NEWER = '9.9.9'

const blocksOf = (language: string): string[] =>
  [...readFileSync(PAGE, 'utf8').matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    match => match[1] ?? '',
  )

type Environment = Readonly<Record<string, string>>

/** A machine of the story: how its commands and its platform find it. */
interface Machine {
  env: Environment
  /** Where its commands are run. `bin` there leads to its version. */
  readonly folder: string
  readonly host: string
  readonly sip_port: number
  platform: Awaited<ReturnType<typeof startPlatform>> | null
}

/** The settings of a machine that was never started, in an empty data folder. */
async function emptyMachine(t: Test): Promise<Environment> {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-second-'))
  t.teardown(() => rmSync(data_dir, { recursive: true, force: true }))
  const [http, sip, sips, ws] = await Promise.all([freePort(), freePort(), freePort(), freePort()])
  const rtp = await freeBlock(RTP_PORTS)
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: data_dir,
    STROWGER_DATA: data_dir,
    STROWGER_HTTP_PORT: String(http),
    STROWGER_SIP_PORT: String(sip),
    STROWGER_SIPS_PORT: String(sips),
    STROWGER_WS_PORT: String(ws),
    STROWGER_RTP_PORTS: `${rtp.first}-${rtp.last}`,
    STROWGER_DEAD_CALL_SECONDS: '9999',
    STROWGER_SANDBOX: 'off',
  }
}

/** Makes the folder of a machine, whose `bin` is that of this tree. */
function folderOf(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-guide-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  symlinkSync(join(TREE, 'bin'), join(folder, 'bin'))
  return folder
}

/** Runs a script on a machine, as a person does. */
function run(t: Test, { folder, env }: Machine, script: string) {
  const child = spawn('bash', ['-ec', script], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill())
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', text => {
      printed += text
    })
  const ended = new Promise<number | null>(resolve => child.once('close', resolve))
  return {
    ended,
    printed: () => printed,
    async worked(): Promise<string> {
      if ((await ended) !== 0) throw new Error(`${script}\n${printed}`)
      return printed
    },
  }
}

t.test('one machine on SQLite becomes two on PostgreSQL, and both are upgraded, as the guide says', async t => {
  const next = join(folderOf(t), 'next')
  const release = makeNewerRelease(next, NEWER)
  const port = String((await postgres()).port)
  const [first_link, second_link] = [await freeRow(2), await freeRow(2)]
  /** The page's addresses, folders and ports, and those of this test. */
  const here = [
    ...[['10.0.0.1:5070', `127.0.0.2:${first_link}`] as const, ['10.0.0.2:5070', `127.0.0.3:${second_link}`] as const],
    ...[['10.0.0.1', '127.0.0.2'] as const, ['10.0.0.2', '127.0.0.3'] as const, ['10.0.0.9', '127.0.0.1'] as const],
    ...[['5432', port] as const, ['/opt/strowger-next', next] as const],
  ]
  const asHere = (text: string): string => here.reduce((all, [theirs, ours]) => all.replaceAll(theirs, ours), text)
  const [move = '', token = '', status = '', expand = '', drain = '', contract = ''] = blocksOf('sh').map(asHere)
  const [first_env = {}, second_env = {}] = blocksOf('env').map(text => parseEnv(asHere(text)) as Environment)

  const w = await world(t, { STROWGER_SANDBOX: 'off', STROWGER_HOST: '127.0.0.2', STROWGER_BIND: '127.0.0.2' })
  const [own = ''] = w.numbers
  const desk = await openSoftphone(t, '127.0.0.83')
  const far_end = await openSoftphone(t, '127.0.0.84')
  const target = { sip_uri: `sip:${far_end.address}:${far_end.port}`, transport: 'udp', priority: 1, weight: 1 }
  await w.addTrunk(desk.address, { targets: [target] })

  const uriOf = ({ host, sip_port }: Machine): string => `sip:${CALLED}@${host}:${sip_port}`
  let placed = 0
  const callBy = async (machine: Machine) => {
    const near = await desk.dial(uriOf(machine), { from: own })
    const far = await far_end.incoming(CALLED)
    await far.answer()
    await near.answered()
    near.hum(440)
    far.hum(880)
    placed++
    return { near, far }
  }
  type Talk = Awaited<ReturnType<typeof callBy>>
  const heard = async ({ near, far }: Talk, why: string): Promise<void> => {
    for (const line of [near, far]) line.rtp.received.length = 0
    await Promise.all([near.hears(880), far.hears(440)])
    t.equal(near.ended ?? far.ended, null, why)
  }
  const start = async (machine: Machine, main?: string): Promise<void> => {
    const platform = await startPlatform(machine.env, main)
    machine.platform = platform
    t.teardown(async () => {
      await platform.stop()
      if (!t.passing()) t.comment(platform.log())
    })
  }
  /** Runs a script that takes a machine out of service, while its call goes on until the caller has had enough. */
  const leave = async (machine: Machine, talk: Talk, script: string): Promise<void> => {
    const leaving = run(t, machine, script)
    await until('no new call is taken', () => leaving.printed().includes('no new call is taken'))
    // The mark is in the database. The machine's signaling hears of it in a moment.
    const ready = `http://${machine.host}:${machine.env['STROWGER_HTTP_PORT']}/readyz/machine`
    await until('its signaling knows', async () => (await fetch(ready)).status === 503)
    t.match(await refusal(t, desk.address, uriOf(machine), own), { status: 503 })
    await heard(talk, 'the call of a machine that is drained goes on')
    talk.near.hangUp()
    t.equal(await talk.near.over(), 'us')
    await leaving.worked()
  }

  const first: Machine = {
    folder: folderOf(t),
    env: w.settings,
    host: '127.0.0.2',
    sip_port: w.sip.port,
    platform: null,
  }
  const before = await callBy(first)
  await heard(before, 'a call of the installation on SQLite')
  await leave(first, before, move)
  t.ok(existsSync(join(first.folder, 'before-the-move.tar.gz')))
  first.env = { ...first.env, ...first_env }
  await start(first)
  const state = await openState({ data_dir: w.data_dir, database_url: first.env['STROWGER_DATABASE_URL'] ?? '' })
  t.teardown(() => state.close())
  // A call that a machine was too busy to decide has a record, too, and was placed again.
  const cdrs = async () => {
    const all = await state.db.selectFrom('cdr').select(['status', 'reason']).execute()
    return all.filter(wasDecided)
  }
  t.same(await cdrs(), [{ status: 'completed', reason: null }], 'its record came along')
  const stays = await callBy(first)

  const offer = run(t, first, token)
  const join_command = await until(
    'the token is printed',
    () => /strowger cluster join \S+ \S+/.exec(offer.printed())?.[0],
  )
  const empty = await emptyMachine(t)
  const second: Machine = {
    ...{
      folder: folderOf(t),
      env: empty,
      host: '127.0.0.3',
      sip_port: Number(empty['STROWGER_SIP_PORT']),
      platform: null,
    },
  }
  await run(t, second, `bin/${join_command}`).worked()
  await offer.worked()
  const handed = parseEnv(readFileSync(join(empty['STROWGER_DATA'] ?? '', 'cluster.env'), 'utf8')) as Environment
  second.env = { ...second.env, ...handed, ...second_env }
  await start(second)
  const machines = async (): Promise<readonly string[]> => {
    const printed = run(t, first, `${status.trimEnd()} --json`)
    if ((await printed.ended) !== 0) return []
    type Shown = { host: string; state: string; version: string; other_settings: string[] }
    const shown = JSON.parse(printed.printed()) as Shown[]
    return shown.map(one => [one.host, one.state, one.version, ...one.other_settings].join(' ')).sort()
  }
  const { version } = JSON.parse(readFileSync(join(TREE, 'package.json'), 'utf8')) as { version: string }
  const both = (of_first: string, of_second: string): string =>
    `127.0.0.2 running ${of_first},127.0.0.3 running ${of_second}`
  await until('both run', async () => (await machines()).join() === both(version, version))
  t.match(await run(t, first, status).worked(), /127\.0\.0\.3/)
  await heard(stays, 'a call while the second machine has joined')
  const beside = await callBy(second)
  await heard(beside, 'a call of the second machine')

  await run(t, first, expand).worked()
  for (const talk of [stays, beside]) await heard(talk, 'nobody notices what is added')
  // A process of the version before starts again on what the newer one has added.
  const control = () => Number(readFileSync(join(second.env['STROWGER_DATA'] ?? '', 'run/control.pid'), 'utf8'))
  const killed = control()
  t.ok(killed > 1)
  process.kill(killed, 'SIGKILL')
  const ready = `http://127.0.0.3:${second.env['STROWGER_HTTP_PORT']}/readyz`
  await until('it starts again', async () => control() !== killed && (await fetch(ready).catch(() => null))?.ok)
  const tooEarly = async (who: RegExp): Promise<void> => {
    const refused = run(t, first, contract)
    t.equal(await refused.ended, 1)
    t.match(refused.printed(), who)
  }
  await tooEarly(/mac_\w+ \(\S+\), mac_\w+ \(\S+\) run an older version: upgrade each machine/)

  const renew = async (machine: Machine, talk: Talk): Promise<void> => {
    await leave(machine, talk, drain)
    await until('it has stopped', () => machine.platform?.child.exitCode !== null)
    rmSync(join(machine.folder, 'bin'))
    symlinkSync(join(next, 'bin'), join(machine.folder, 'bin'))
    await start(machine, release.main)
  }
  await renew(first, stays)
  await until('one is upgraded', async () => (await machines()).join() === both(NEWER, version))
  await heard(beside, 'a call of the machine that waits for its turn')
  const newer = await callBy(first)
  await heard(newer, 'a call of the newer version beside the older one')
  await tooEarly(/^strowger: mac_\w+ \(\S+\) runs an older version/)
  await renew(second, beside)
  await until('both are upgraded', async () => (await machines()).join() === both(NEWER, NEWER))
  t.match(await run(t, first, contract).worked(), /has the schema of this version/)
  await heard(newer, 'nobody notices what is taken away')
  const last = await callBy(second)
  await heard(last, 'a call of the newer version')
  for (const { near } of [newer, last]) near.hangUp()
  await until('all have ended', async () => (await cdrs()).length === placed)
  t.same(new Set((await cdrs()).map(({ status, reason }) => `${status} ${reason}`)), new Set(['completed null']))
  t.equal(placed, 5, 'no call was cut')
})
