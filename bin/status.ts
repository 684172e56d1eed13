import { existsSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Command } from 'commander'
import { oneLine } from '../core/domain/text/visible.ts'
import { runBare } from '../core/runtime/bare-child.ts'
import { VARIABLES } from '../core/runtime/config.ts'
import { databaseName } from '../core/runtime/database-url.ts'
import { TREE } from '../core/runtime/tree.ts'
import { read } from '../core/runtime/variables.ts'
import { DATABASE_FILE } from '../core/state/index.ts'
import { painted, toneOf } from './colour.ts'
import { fitted } from './fit.ts'
import { thisInstallation } from './installation.ts'
import { platformProcess, runningSupervisor } from './pid-file.ts'
import { runningPlatform } from './platform-file.ts'
import { orSayWhy } from './say.ts'
import { hasSystemd, PLACES, thisSystem, UNIT, versionAt } from './service/places.ts'
import { fail, give, show, terminal } from './terminal.ts'
import { begunUpgrade } from './upgrade/steps.ts'
import { hasState } from './where-state-is.ts'

/** A line of the status: what it is about, a word for its state, and the details. */
interface Line {
  readonly what: string
  readonly state: 'ok' | 'WARN' | 'down'
  readonly detail: string
}

interface Readiness {
  readonly checks?: Readonly<Record<string, boolean>>
}

const ANSWER_WITHIN_MS = 5000
const GIB = 1024 ** 3
/** A disk with less room may not hold the next backup. */
const LITTLE_GIB = 2

/** How systemd sees the service of this folder; null for a platform that it does not run. */
async function service(data_dir: string): Promise<Line | null> {
  if (data_dir !== PLACES.data || !hasSystemd(thisSystem())) return null
  const words = ['show', UNIT, '--property=LoadState,ActiveState,SubState,UnitFileState', '--value']
  const end = await runBare('systemctl', words, { max_bytes: 4096, limit_ms: ANSWER_WITHIN_MS })
  const [load, active = '', sub, enabled] = end.ok ? end.stdout.toString().trim().split('\n') : []
  if (load !== 'loaded') return null
  const detail = `${UNIT} ${active} (${sub}), ${enabled} at boot`
  return { what: 'service', state: active === 'active' ? 'ok' : 'down', detail }
}

/** Whether the running platform is of this version. */
function version(data_dir: string): Line {
  const [ours, running] = [versionAt(TREE) ?? 'unknown', runningPlatform(data_dir)]
  const node = `Node.js ${process.versions.node}`
  if (running === null || running.version === ours) return { what: 'version', state: 'ok', detail: `${ours}, ${node}` }
  return { what: 'version', state: 'WARN', detail: `${running.version} runs, ${ours} is installed: restart it` }
}

async function platform(data_dir: string, run_dir: string): Promise<Line> {
  const running = runningPlatform(data_dir)
  if (running === null) {
    const by = await platformProcess(run_dir)
    if (by === null) return { what: 'platform', state: 'down', detail: `nothing runs on ${data_dir}` }
    if (runningSupervisor(run_dir) !== null)
      return { what: 'platform', state: 'down', detail: `${by} starts, or is of an older version` }
    return { what: 'platform', state: 'WARN', detail: `${by} runs it: ask there, as with docker compose exec` }
  }
  const lives = readdirSync(run_dir)
    .filter(name => name.endsWith('.pid') && name !== 'supervisor.pid')
    .map(name => ({ name: basename(name, '.pid'), pid: readFileSync(join(run_dir, name), 'utf8').trim() }))
    .filter(({ pid }) => existsSync(`/proc/${pid}`))
  const names = lives.map(({ name, pid }) => `${name} ${pid}`).sort()
  return { what: 'platform', state: 'ok', detail: `since ${running.started_at}: ${names.join(', ')}` }
}

/** What /readyz says; a platform that does not run is asked nothing. */
async function health(data_dir: string): Promise<Line | null> {
  const running = runningPlatform(data_dir)
  if (running === null) return null
  const what = 'health'
  try {
    const answer = await fetch(`${running.http}/readyz`, {
      redirect: 'error',
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    })
    if (answer.status === 200) return { what, state: 'ok', detail: `${running.base_url} takes calls` }
    const { checks = {} } = (await answer.json().catch(() => ({}))) as Readiness
    const missing = Object.keys(checks).filter(name => !checks[name])
    return { what, state: 'down', detail: `no calls are taken: ${missing.join(', ') || `HTTP ${answer.status}`}` }
  } catch (error) {
    return { what, state: 'down', detail: `${running.http} does not answer: ${(error as Error).message}` }
  }
}

function data(data_dir: string, database_url: string | null): Line {
  if (!hasState(data_dir)) return { what: 'data', state: 'down', detail: `no installation in ${data_dir}` }
  const { bavail, bsize } = statfsSync(data_dir)
  const free = (bavail * bsize) / GIB
  // PostgreSQL watches its own disk.
  const own = statSync(join(data_dir, DATABASE_FILE), { throwIfNoEntry: false })
  const size = database_url === null ? (own?.size ?? 0) / GIB : 0
  const database = database_url === null ? `${size.toFixed(1)} GiB` : `PostgreSQL at ${databaseName(database_url)}`
  const detail = `${data_dir}, database ${database}, ${free.toFixed(1)} GiB free`
  return { what: 'data', state: free < Math.max(LITTLE_GIB, 2 * size) ? 'WARN' : 'ok', detail }
}

function upgrade(data_dir: string): Line | null {
  const begun = begunUpgrade(data_dir)
  if (begun === null) return null
  const detail = `to ${begun.to} stopped in its step "${begun.step}": strowger upgrade --back, or --continue`
  return { what: 'upgrade', state: 'WARN', detail }
}

/** What an operator wants to know first: the service, versions and health in one screen. Exit code 1: no calls. */
export const statusCommand = (): Command =>
  new Command('status').option('--json', 'as JSON').action(({ json }: { readonly json?: true }) =>
    orSayWhy(async () => {
      const { data_dir, env } = thisInstallation()
      const run_dir = join(data_dir, 'run')
      const found = [
        await service(data_dir),
        version(data_dir),
        await platform(data_dir, run_dir),
        await health(data_dir),
        data(data_dir, read(env, VARIABLES.database_url)),
        upgrade(data_dir),
      ].filter(line => line !== null)
      if (json) give(`${JSON.stringify(found)}\n`)
      else {
        const width = terminal().columns ?? Number.POSITIVE_INFINITY
        const lines = found.map(({ what, state, detail }) => `${state.padEnd(5)}${what.padEnd(9)} ${oneLine(detail)}`)
        show(lines.flatMap(line => fitted(line, width).split('\n')).map(withTone))
      }
      if (runningSupervisor(run_dir) === null || found.some(({ state }) => state === 'down')) fail()
    }),
  )

/** Paints the state at the start of a line. */
function withTone(line: string): string {
  const [word = ''] = line.split(' ')
  const tone = toneOf(word)
  return tone === null ? line : painted(word, tone) + line.slice(word.length)
}
