import { spawn } from 'node:child_process'
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { runBare } from '../../core/runtime/bare-child.ts'
import type { Settings } from '../../core/runtime/config.ts'
import { removeDurably, renameDurably, syncToDisk, writeDurably } from '../../core/runtime/durable-files.ts'
import { StartRefused } from '../../core/runtime/start-refused.ts'
import { DATABASE_FILE, keepDatabase, setBackDatabase } from '../../core/state/index.ts'
import { stamp } from '../files.ts'
import { platformProcess, readIfThere, runningSupervisor } from '../pid-file.ts'
import { runningPlatform } from '../platform-file.ts'
import { inStaging } from '../staging.ts'
import { progress, tell, terminal } from '../terminal.ts'
import { noteStopAt } from '../where-state-is.ts'
import { runVersion } from './program.ts'
import { rehearsedBy, unpacked } from './rehearsal.ts'

/**
 * The steps of an upgrade, in their order. Each can be done again, and the journal names the one that was begun: after
 * a power cut in any of them `upgrade --back` goes back from there, and `upgrade --continue` goes on.
 */
const STEPS = ['backup', 'drain', 'copy', 'switch', 'migrate', 'start'] as const
type Step = (typeof STEPS)[number]

/** Where the data of the installation is, and what runs on it. */
type Place = Pick<Settings, 'data_dir' | 'run_dir'>

/** What is written down before each step, in `DATA.upgrade.json`: beside the data. */
interface Journal {
  readonly step: Step
  /** The link by which the installation is started, and the versions that it leads to. */
  readonly link: string
  readonly from: string
  readonly to: string
  /** An archive of all, made while calls run. */
  readonly backup: string
  /**
   * The database when the last call had ended: the way back loses no call of before the switch. Null: it is one of
   * PostgreSQL, to which a release only adds, so that the version before runs on it (decision 1086).
   */
  readonly copy: string | null
  /** What the new version migrates. Without any, the old version can use the data as it is. */
  readonly migrations: readonly string[]
  /** Unit of systemd; null: the platform is started as a process of its own. */
  readonly service: string | null
}

/** A platform that is not ready by then is given up. */
const READY_WITHIN_MS = 180_000
const LOOK_MS = 200

const journalFile = (data_dir: string): string => `${data_dir}.upgrade.json`

/** The upgrade that was begun and is not over; null for none. */
export function begunUpgrade(data_dir: string): Journal | null {
  const text = readIfThere(journalFile(data_dir))
  return text === null ? null : (JSON.parse(text) as Journal)
}

/** Puts a release beside the version that runs. Returns the journal of its upgrade. @throws StartRefused */
export async function prepared(
  release: string,
  { data_dir, database_url }: Place & Pick<Settings, 'database_url'>,
  given: { readonly link: string; readonly service: string | null; readonly migrations: readonly string[] },
): Promise<Journal> {
  const link = resolve(given.link)
  if (!existsSync(link) || !lstatSync(link).isSymbolicLink())
    throw new StartRefused(`${given.link} is no link to the folder of a version: see "Upgrade" in docs/operations.md`)
  const from = realpathSync(link)
  return inStaging(dirname(from), async staging => {
    const program = await unpacked(release, join(staging, 'release'))
    const folder = dirname(dirname(program))
    const to = folder === resolve(release) ? folder : join(dirname(from), `strowger-${versionOf(folder)}`)
    if (realpathSync(folder) === from || to === from) throw new StartRefused(`${given.link} leads to ${to} already`)
    if (to !== folder) {
      if (existsSync(to)) throw new StartRefused(`${to} exists already: name that folder to install it`)
      // A power cut must not leave a release of empty files under its name.
      const synced = await runBare('sync', ['--file-system', folder], { max_bytes: 1000 })
      if (!synced.ok) throw new StartRefused(synced.detail)
      renameDurably(folder, to)
    }
    const before = `${data_dir}.before-${versionOf(to)}-${stamp()}`
    const copy = database_url === null ? `${before}${DATABASE_END}` : null
    return { step: 'backup', from, to, backup: `${before}.tar.gz`, copy, ...given, link }
  })
}

const DATABASE_END = extname(DATABASE_FILE)

const versionOf = (folder: string): string =>
  (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly version: string }).version

const programOf = (folder: string): string => join(folder, 'bin/strowger')

const WORK: Readonly<Record<Step, (journal: Journal, place: Place) => Promise<unknown>>> = {
  async backup({ from, backup }, { data_dir }) {
    if (!existsSync(backup)) await runVersion(programOf(from), ['--data', data_dir, 'backup', backup])
  },
  async drain({ from }, { data_dir, run_dir }) {
    if (runningSupervisor(run_dir) !== null) await runVersion(programOf(from), ['--data', data_dir, 'drain', '--wait'])
  },
  async copy({ copy }, { data_dir, run_dir }) {
    if ((await platformProcess(run_dir)) !== null) throw new StartRefused('something has started the platform again')
    if (copy !== null) keepDatabase(data_dir, copy)
  },
  async switch({ link, to }) {
    point(link, to)
  },
  async migrate({ to, copy }, { data_dir }) {
    if (copy === null) {
      await runVersion(programOf(to), ['--data', data_dir, 'migrate', '--expand'])
      return
    }
    const { broken } = await rehearsedBy(programOf(to), { data_dir, database_url: null })
    if (broken.length > 0) throw new StartRefused(`the new version finds broken: ${broken.join('; ')}`)
    noteWhole(data_dir)
  },
  start: (journal, place) => started(journal, journal.to, place),
}

/**
 * Carries out an upgrade from the step of its journal. Any failure leads back to the version before, with its data; so
 * does a signal, such as that of a terminal which is closed. @throws StartRefused
 */
export async function runUpgrade(journal: Journal, place: Place): Promise<void> {
  const { data_dir } = place
  const stop = untilSignal()
  try {
    for (const step of STEPS.slice(STEPS.indexOf(journal.step))) {
      stop.check()
      writeDurably(journalFile(data_dir), `${JSON.stringify({ ...journal, step })}\n`)
      tell(`${step} …\n`)
      await WORK[step](journal, place)
    }
  } catch (error) {
    tell(`${error instanceof Error ? error.message : error}\nthe way back …\n`)
    await back(journal, place)
    throw new StartRefused(`${basename(journal.to)} was not installed; ${basename(journal.from)} runs with its data`)
  } finally {
    stop.over()
  }
  removeDurably(journalFile(data_dir))
}

const SIGNALS = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const

/** Keeps this process when a signal would end it between two steps; `check` throws then. */
function untilSignal(): { readonly check: () => void; readonly over: () => void } {
  let got: NodeJS.Signals | null = null
  const note = (signal: NodeJS.Signals): void => {
    got = signal
  }
  // A terminal that was closed takes no more text.
  const ignore = (): void => undefined
  for (const signal of SIGNALS) process.on(signal, note)
  for (const stream of [process.stdout, process.stderr]) stream.on('error', ignore)
  return {
    check() {
      if (got !== null) throw new StartRefused(`ended by ${got}`)
    },
    over() {
      for (const signal of SIGNALS) process.off(signal, note)
      for (const stream of [process.stdout, process.stderr]) stream.off('error', ignore)
    },
  }
}

/**
 * Goes on with an upgrade that was interrupted. A machine that has started again since runs what the link leads to. The
 * version before has taken calls then, so it is drained and copied again. The new one has calls that no copy has, so
 * nothing but `back` takes it back. @throws StartRefused
 */
export async function resume(begun: Journal, place: Place): Promise<void> {
  const is_new = !leadsTo(begun.link, begun.from)
  if (is_new && runningSupervisor(place.run_dir) !== null) {
    await started(begun, begun.to, place)
    removeDurably(journalFile(place.data_dir))
    return
  }
  const step = is_new ? 'migrate' : begun.step === 'backup' ? 'backup' : 'drain'
  await runUpgrade({ ...begun, step }, place)
}

/** The start need not check what was examined just now, or copied: that takes longer than a service may start. */
const noteWhole = (data_dir: string): void => noteStopAt({ data_dir, database_url: null })

const leadsTo = (link: string, folder: string): boolean => existsSync(link) && realpathSync(link) === folder

/**
 * Leads back to the version before, wherever the upgrade stands. The copy of before the switch takes the place of the
 * database only when the new version may have migrated it: calls since then are lost with it, and it is kept aside.
 */
export async function back(journal: Journal, place: Place): Promise<void> {
  const { data_dir, run_dir } = place
  const { step, link, from, to, copy, migrations, service } = begunUpgrade(data_dir) ?? journal
  const reached = STEPS.indexOf(step)
  // Before the drain nothing was changed, and what runs goes on.
  if (reached >= STEPS.indexOf('switch') && !leadsTo(link, from)) {
    await stopped(service, place)
    const aside = `${data_dir}.of-${basename(to)}-${stamp()}${DATABASE_END}`
    if (migrations.length > 0 && copy !== null) {
      setBackDatabase(data_dir, copy, aside)
      noteWhole(data_dir)
      tell(`what ${basename(to)} wrote is kept in ${aside}\n`)
    }
    point(link, from)
  }
  // A drain that ended meanwhile has stopped the platform, which is started below.
  if (step === 'drain' && runningSupervisor(run_dir) !== null)
    await runVersion(programOf(from), ['--data', data_dir, 'drain', '--cancel']).catch(tellWhy)
  if (reached >= STEPS.indexOf('drain')) await started({ link, service }, from, place)
  removeDurably(journalFile(data_dir))
}

function tellWhy(error: unknown): void {
  if (!(error instanceof StartRefused)) throw error
  tell(`${error.message}\n`)
}

/**
 * Points the link to a folder in one step (rename(2)). To a folder beside it the link is relative, as
 * `install` makes it: it leads there from outside a container or a rescue system too.
 */
function point(link: string, folder: string): void {
  const next = `${link}.next`
  rmSync(next, { force: true })
  symlinkSync(dirname(folder) === dirname(link) ? basename(folder) : folder, next)
  renameSync(next, link)
  syncToDisk(dirname(link))
}

async function systemctl(verb: 'start' | 'stop', unit: string): Promise<void> {
  const end = await runBare('systemctl', [verb, unit], { max_bytes: 1024 * 1024 })
  if (!end.ok) throw new StartRefused(end.detail)
}

type Started = Pick<Journal, 'link' | 'service'>

/** Starts the platform of the link unless it runs, and waits until this version is ready. @throws StartRefused */
async function started(by: Started, folder: string, { data_dir, run_dir }: Place): Promise<void> {
  const version = versionOf(folder)
  progress(`waiting until ${version} is ready`)
  const deadline = performance.now() + READY_WITHIN_MS
  let begun: { readonly ended: () => boolean } | null = null
  while (performance.now() < deadline && !begun?.ended()) {
    // One that was about to stop has stopped by now.
    if (begun === null && runningSupervisor(run_dir) === null) begun = await start(by, data_dir)
    const running = runningPlatform(data_dir)
    if (running?.version === version && (await isReady(running.http))) return
    await sleep(LOOK_MS)
  }
  const log = by.service === null ? logFile(data_dir) : `the journal of ${by.service}`
  throw new StartRefused(`${version} did not become ready; ${log} says why`)
}

const logFile = (data_dir: string): string => `${data_dir}.upgrade.log`

/** Starts the platform of the link. Returns how to know that it has ended; of a service its manager knows. */
async function start({ link, service }: Started, data_dir: string): Promise<{ readonly ended: () => boolean }> {
  if (service !== null) {
    await systemctl('start', service)
    return { ended: () => false }
  }
  let ended = false
  const output = openSync(logFile(data_dir), 'a', 0o600)
  const stdio: ['ignore', number, number] = ['ignore', output, output]
  const env = { ...terminal().env }
  const child = spawn(programOf(link), ['--data', data_dir, 'up'], { detached: true, env, stdio })
  const over = (): void => {
    ended = true
  }
  child.once('exit', over).once('error', over).unref()
  closeSync(output)
  return { ended: () => ended }
}

const isReady = async (http: string): Promise<boolean> =>
  (await fetch(`${http}/readyz`, { redirect: 'error' }).catch(() => null))?.status === 200

/** Stops the platform if it runs. */
async function stopped(service: string | null, { run_dir }: Place): Promise<void> {
  const pid = runningSupervisor(run_dir)
  if (pid === null) return
  if (service === null) process.kill(pid, 'SIGTERM')
  else await systemctl('stop', service)
  while (runningSupervisor(run_dir) === pid) await sleep(LOOK_MS)
}
