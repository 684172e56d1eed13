import { spawn } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { runBare } from '../../core/runtime/bare-child.ts'
import type { Settings } from '../../core/runtime/config.ts'
import { StartRefused } from '../../core/runtime/start-refused.ts'
import { readIfThere, runningSupervisor, writeWhole } from '../pid-file.ts'
import { runningPlatform } from '../platform-file.ts'
import { progress, tell, terminal } from '../terminal.ts'
import { runVersion } from './program.ts'
import { rehearsedBy, unpacked } from './rehearsal.ts'

/**
 * The steps of an upgrade, in their order. Each can be done again, and the journal names the one that was begun: after
 * a power cut in any of them `upgrade --back` goes back from there.
 */
const STEPS = ['backup', 'drain', 'switch', 'migrate', 'start'] as const
type Step = (typeof STEPS)[number]

/** Where the data of the installation is, and what runs on it. */
type Place = Pick<Settings, 'data_dir' | 'run_dir'>

/** What is written down before each step, in `DATA.upgrade.json`: beside the data, which the way back replaces. */
interface Journal {
  readonly step: Step
  /** The link by which the installation is started, and the versions that it leads to. */
  readonly link: string
  readonly from: string
  readonly to: string
  readonly backup: string
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
  { data_dir }: Place,
  given: { readonly link: string; readonly service: string | null; readonly migrations: readonly string[] },
): Promise<Journal> {
  const link = resolve(given.link)
  if (!existsSync(link) || !lstatSync(link).isSymbolicLink())
    throw new StartRefused(`${given.link} is no link to the folder of a version: see "Upgrade" in docs/operations.md`)
  const from = realpathSync(link)
  const staging = mkdtempSync(join(dirname(from), '.upgrade-'))
  try {
    const program = await unpacked(release, join(staging, 'release'))
    const folder = dirname(dirname(program))
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly version: string }
    const to = join(dirname(from), `strowger-${version}`)
    if (folder !== resolve(release)) {
      if (existsSync(to)) throw new StartRefused(`${to} exists already`)
      renameSync(folder, to)
    }
    const backup = `${data_dir}.before-${version}-${new Date().toISOString().replaceAll(/[:.]/g, '-')}.tar.gz`
    return { step: 'backup', from, to: existsSync(to) ? to : folder, backup, ...given, link }
  } finally {
    rmSync(staging, { recursive: true, force: true })
  }
}

const programOf = (folder: string): string => join(folder, 'bin/strowger')

/** Carries out an upgrade. Any failure leads back to the version before, with its data. @throws StartRefused */
export async function carryOut(journal: Journal, config: Place): Promise<void> {
  const { data_dir, run_dir } = config
  const begin = (step: Step): void => {
    writeWhole(journalFile(data_dir), `${JSON.stringify({ ...journal, step })}\n`)
    tell(`${step} …\n`)
  }
  const at = ['--data', data_dir]
  try {
    begin('backup')
    await runVersion(programOf(journal.from), [...at, 'backup', journal.backup])
    begin('drain')
    if (runningSupervisor(run_dir) !== null) await runVersion(programOf(journal.from), [...at, 'drain', '--wait'])
    begin('switch')
    point(journal.link, journal.to)
    begin('migrate')
    const { broken } = await rehearsedBy(programOf(journal.to), data_dir)
    if (broken.length > 0) throw new StartRefused(`the new version finds broken: ${broken.join('; ')}`)
    begin('start')
    await started(journal, config)
  } catch (error) {
    tell(`${error instanceof Error ? error.message : error}\nthe way back …\n`)
    await back(journal, config)
    throw new StartRefused(`${basename(journal.to)} was not installed; ${basename(journal.from)} runs with its data`)
  }
  rmSync(journalFile(data_dir), { force: true })
}

/**
 * Leads back to the version before, wherever the upgrade stands. The backup takes the place of the data only when the
 * new version may have migrated it: calls since then are lost with it, and the data so far is kept aside.
 */
export async function back(journal: Journal, config: Place): Promise<void> {
  const { data_dir } = config
  const { link, from, backup, migrations } = begunUpgrade(data_dir) ?? journal
  const reached = STEPS.indexOf((begunUpgrade(data_dir) ?? journal).step)
  // Before the drain nothing was changed, and what runs goes on.
  if (reached >= STEPS.indexOf('switch')) {
    await stopped(journal, config)
    point(link, from)
    if (reached >= STEPS.indexOf('migrate') && migrations.length > 0)
      await runVersion(programOf(from), ['--data', data_dir, 'restore', '--replace', backup])
  }
  const { run_dir } = config
  if (reached === STEPS.indexOf('drain') && runningSupervisor(run_dir) !== null)
    await runVersion(programOf(from), ['--data', data_dir, 'drain', '--cancel'])
  if (reached >= STEPS.indexOf('drain')) await started({ ...journal, to: from }, config)
  rmSync(journalFile(data_dir), { force: true })
}

/** Makes the link lead to a folder, at once for whoever follows it. */
function point(link: string, folder: string): void {
  const next = `${link}.next`
  rmSync(next, { force: true })
  symlinkSync(folder, next)
  renameSync(next, link)
}

async function systemctl(verb: 'start' | 'stop', unit: string): Promise<void> {
  const end = await runBare('systemctl', [verb, unit], { max_bytes: 1024 * 1024 })
  if (!end.ok) throw new StartRefused(end.detail)
}

/** Starts the platform of the link unless it runs, and waits until it is ready. @throws StartRefused */
async function started({ link, service, to }: Journal, { data_dir, run_dir }: Place): Promise<void> {
  const log = `${data_dir}.upgrade.log`
  let ended: number | null = null
  if (runningSupervisor(run_dir) === null) {
    if (service !== null) await systemctl('start', service)
    else {
      const output = openSync(log, 'a', 0o600)
      const env = { ...terminal().env }
      const stdio: ['ignore', number, number] = ['ignore', output, output]
      const child = spawn(programOf(link), ['--data', data_dir, 'up'], { detached: true, env, stdio })
      child.once('exit', code => {
        ended = code ?? 1
      })
      child.once('error', () => {
        ended = 1
      })
      child.unref()
    }
  }
  const { version } = JSON.parse(readFileSync(join(to, 'package.json'), 'utf8')) as { readonly version: string }
  progress(`waiting until ${version} is ready`)
  const deadline = performance.now() + READY_WITHIN_MS
  while (performance.now() < deadline && ended === null) {
    const running = runningPlatform(data_dir)
    if (running?.version === version && (await isReady(running.http))) return
    await sleep(LOOK_MS)
  }
  throw new StartRefused(
    `${version} did not become ready; ${service === null ? log : `the journal of ${service}`} says why`,
  )
}

const isReady = async (http: string): Promise<boolean> =>
  (await fetch(`${http}/readyz`, { redirect: 'error' }).catch(() => null))?.status === 200

/** Stops the platform if it runs. */
async function stopped({ service }: Journal, { run_dir }: Place): Promise<void> {
  const pid = runningSupervisor(run_dir)
  if (pid === null) return
  if (service === null) process.kill(pid, 'SIGTERM')
  else await systemctl('stop', service)
  while (runningSupervisor(run_dir) === pid) await sleep(LOOK_MS)
}
