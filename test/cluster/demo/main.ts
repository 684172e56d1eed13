import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { SERVER_FOLDER } from '../../../bench/postgres-server.ts'
import { type Made, startUp } from '../../../bench/up.ts'
import { runCommand } from '../../support/command-line.ts'
import { ownServer } from '../../support/postgres.ts'
import { until } from '../../support/wait.ts'

// `npm run cluster:demo`: two machines on loopback addresses share a PostgreSQL that this program starts. It places
// calls on both, kills one of them, and shows what survives. It leaves nothing behind, also after Ctrl-C and kill -9.

const HOSTS = ['127.0.0.2', '127.0.0.3'] as const
/** A sandbox number that answers and plays a tone until it is hung up. */
const CALLED = '+2348030001234'
const CALLS = 4

type Machine = Awaited<ReturnType<typeof startUp>>

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const undos: (() => Promise<unknown> | unknown)[] = []
let interrupted = false
let cleaning: Promise<void> | null = null

/** Ends what was started, the last first. */
function cleanUp(): Promise<void> {
  const undoAll = async (): Promise<void> => {
    for (let undo = undos.pop(); undo; undo = undos.pop()) await undo()
  }
  cleaning ??= undoAll()
  return cleaning
}

function goOn(): void {
  if (interrupted) throw new Error('interrupted')
}

/** Starts something, and ends it at the end, also when that comes while it starts. */
async function started<T>(start: () => Promise<T>, end: (made: T) => Promise<unknown>): Promise<T> {
  goOn()
  const starting = start()
  undos.push(() => starting.then(end, () => undefined))
  const made = await starting
  goOn()
  return made
}

/** Waits for the end of its standard input, which is that of this process, and removes what is left. */
const HEIR =
  'cat; sleep 1; for i in 1 2 3 4 5; do rm -rf -- "$1" "$2"-*; sleep 1; [ -z "$(ls -d -- "$1" "$2"-* 2>/dev/null)" ] && exit; done'

/** Makes the folder of all that the demo writes. A process that outlives this one removes it. */
function makeFolder(): void {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-demo-'))
  // A server of another user has its folder in it, or in memory.
  chmodSync(folder, 0o711)
  process.env['TMPDIR'] = folder
  const in_memory = `/dev/shm/${SERVER_FOLDER}${process.pid}`
  const words = ['-c', HEIR, 'sh', folder, in_memory]
  spawn('sh', words, { detached: true, stdio: ['pipe', 'ignore', 'ignore'] }).unref()
  undos.push(() => rmSync(folder, { recursive: true, force: true }))
}

async function api(
  made: Made,
  path: string,
  form?: Readonly<Record<string, string>>,
): Promise<Record<string, unknown>> {
  const response = await fetch(`${made.base_url}/2010-04-01/Accounts/${made.account_sid}${path}`, {
    headers: { authorization: `Basic ${Buffer.from(`${made.account_sid}:${made.auth_token}`).toString('base64')}` },
    ...(form ? { method: 'POST', body: new URLSearchParams(form) } : {}),
  })
  const body = (await response.json()) as Record<string, unknown>
  if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(body)}`)
  return body
}

const callsIn = async (made: Made, status: string): Promise<readonly { readonly sid: string }[]> =>
  (await api(made, `/Calls.json?Status=${status}&PageSize=100`))['calls'] as { sid: string }[]

/** Prints what `strowger cluster status` says on a machine, and returns the calls that each one runs. */
async function status(machine: Machine, env: Readonly<Record<string, string>>): Promise<readonly number[]> {
  const around = { env: { ...env, STROWGER_DATA: machine.folder } }
  say((await runCommand(['cluster', 'status'], { ...around, columns: 120 })).stdout)
  const { stdout } = await runCommand(['cluster', 'status', '--json'], around)
  const machines = JSON.parse(stdout) as { host: string; live_calls: number }[]
  return HOSTS.map(host => machines.find(one => one.host === host)?.live_calls ?? 0)
}

/** Waits for Enter where a person watches. */
async function turn(what: string): Promise<void> {
  if (!process.stdin.isTTY) return
  const asking = createInterface({ input: process.stdin, output: process.stdout })
  asking.once('SIGINT', interrupt)
  await asking.question(`\nEnter: ${what} `)
  asking.close()
}

async function demo(): Promise<void> {
  makeFolder()
  say('PostgreSQL starts …')
  const server = await started(
    () => ownServer(undo => undos.push(undo)),
    () => Promise.resolve(),
  )
  const env = { STROWGER_DATABASE_URL: server.url, STROWGER_MASTER_KEY: randomBytes(32).toString('hex') }
  const machines: Machine[] = []
  for (const host of HOSTS) {
    say(`the machine on ${host} starts …`)
    const settings = { ...env, STROWGER_HOST: host, STROWGER_LOG: 'fatal' }
    machines.push(
      await started(
        () => startUp('cluster', settings),
        machine => machine.stop(),
      ),
    )
  }
  const [one, two] = machines
  if (!one || !two) throw new Error('there are two machines')
  for (const { made } of machines)
    say(`console    ${made.base_url}/console   ${made.console.email}   ${one.made.console.password}`)

  say(`\n${CALLS} calls are placed, and whichever machine is first takes each …`)
  const form = {
    From: one.made.numbers[0] ?? '',
    To: CALLED,
    InlineMarkup: '<Response><Pause length="3600"/></Response>',
  }
  for (let calls = 0; ; calls++) {
    await api(machines[calls % 2]?.made ?? one.made, '/Calls.json', form)
    await until('the call is answered', async () => (await callsIn(one.made, 'in-progress')).length > calls)
    if (calls + 1 < CALLS) continue
    const { stdout } = await runCommand(['cluster', 'status', '--json'], { env: { ...env, STROWGER_DATA: one.folder } })
    if ((JSON.parse(stdout) as { live_calls: number }[]).every(({ live_calls }) => live_calls > 0)) break
  }
  const [, lost = 0] = await status(one, env)
  const before = await callsIn(one.made, 'in-progress')

  await turn('kill the second machine')
  say(`kill -9 of every process on ${HOSTS[1]}; its ${lost} calls are lost, and nobody tells the first machine …`)
  const pids = Object.entries(two.pids).sort(([name]) => (name === 'supervisor' ? -1 : 1))
  for (const [, pid] of pids) process.kill(pid, 'SIGKILL')
  const begun_ms = performance.now()
  await until('its processes are gone', () => pids.every(([, pid]) => !existsSync(`/proc/${pid}`)))
  const kept = await until('its calls are ended', async () => {
    const running = await callsIn(one.made, 'in-progress')
    return running.length === before.length - lost && running
  })
  say(`after ${Math.round((performance.now() - begun_ms) / 1000)} s the first machine has ended them, each with a CDR;`)
  say(`its own ${kept.length} go on:\n`)
  await status(one, env)
  const { sid } = await api(one.made, '/Calls.json', form)
  await until('a new call is answered', async () =>
    (await callsIn(one.made, 'in-progress')).some(call => call.sid === sid),
  )
  say('a new call was answered: nothing that the first machine does waits for the second.')
  await turn('stop everything')
}

const sayOver = (): void => say('\nall is stopped, and the folders are removed.')

function interrupt(): void {
  if (interrupted) return
  interrupted = true
  say('\nstops …')
  void cleanUp()
    .then(sayOver)
    .then(() => process.exit(130))
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt)
demo()
  .finally(cleanUp)
  .then(
    () => {
      if (!interrupted) sayOver()
    },
    error => {
      // What was stopped under it fails.
      if (interrupted) return
      console.error(`cluster:demo: ${error instanceof Error ? error.message : error}`)
      process.exitCode = 1
    },
  )
