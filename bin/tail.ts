import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import type { Config } from '../core/runtime/config.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import type { Db } from '../core/state/index.ts'
import { ladderText } from './ladder.ts'
import { browse, hasScreen } from './screen/browse.ts'
import type { View } from './screen/browsing.ts'
import { withWholeIds } from './short-ids.ts'
import { withState } from './state.ts'
import { type Column, shortId, table } from './table.ts'
import { give, show, terminal } from './terminal.ts'

interface Options {
  readonly project?: string
  readonly every: string
  readonly once?: true
  readonly json?: true
}

interface Call {
  readonly id: string
  readonly at: string
  readonly status: string
  readonly from: string
  readonly to: string
  readonly direction: string
  readonly reason: string | null
  readonly project_id: string
}

/** The newest calls that are watched: older ones rarely change. */
const WATCHED = 500
/** What `tail` shows of the past. */
const BEFORE = 10

/** Follows the calls of the installation: a line whenever one begins or its status changes. */
export const tailCommand = (): Command =>
  new Command('tail')
    .option('--project <id>', 'of this project alone')
    .option('--every <seconds>', 'how often to look', '0.5')
    .option('--once', 'the last calls, then end')
    .option('--json', 'as JSON, a line for each change')
    .action((options: Options) =>
      withState(async ({ db }, config) => {
        const every_ms = Number(options.every) * 1000
        if (!(every_ms >= 100 && every_ms <= 3_600_000))
          throw new StartRefused(`--every ${options.every}: expected 0.1 to 3600 seconds`)
        const { project_id } = await withWholeIds(db, { project_id: options.project })
        const look = () => newest(db, project_id)
        if (hasScreen() && !options.once && !options.json) return browseCalls(db, config, { look, every_ms })
        await follow(look, every_ms, options)
      }),
    )

async function newest(db: Db, project_id: string | undefined): Promise<Call[]> {
  const all = db.selectFrom('call').selectAll().orderBy('position', 'desc').limit(WATCHED)
  const rows = await (project_id === undefined ? all : all.where('project_id', '=', project_id)).execute()
  return rows.map(row => ({
    id: row.sid,
    at: row.updated_at,
    status: row.status,
    from: row.from_number,
    to: row.to_number,
    direction: row.direction,
    reason: row.reason,
    project_id: row.project_id,
  }))
}

/** Prints each change until a signal comes or the reader goes. */
async function follow(look: () => Promise<Call[]>, every_ms: number, { once, json }: Options): Promise<void> {
  const over = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => over.abort())
  process.stdout.once('error', () => over.abort())
  const seen = new Map<string, string>()
  for (let first = true; ; first = false) {
    const calls = (await look()).reverse()
    const changed = calls.filter(({ id, status }) => seen.get(id) !== status)
    for (const { id, status } of changed) seen.set(id, status)
    const news = first ? changed.slice(-BEFORE) : changed
    if (json) for (const call of news) give(`${JSON.stringify(call)}\n`)
    else if (news.length > 0) {
      const { columns } = terminal()
      const lines = table(news, columnsOf(columns !== null), columns ?? Number.POSITIVE_INFINITY)
      show(first ? lines : lines.slice(1))
    }
    if (once) return
    await sleep(every_ms, undefined, { signal: over.signal }).catch(() => undefined)
    if (over.signal.aborted) return
  }
}

interface Looking {
  readonly look: () => Promise<Call[]>
  readonly every_ms: number
}

function browseCalls(db: Db, config: Config, { look, every_ms }: Looking): Promise<void> {
  const view = async (): Promise<View<Call>> => ({
    head: ['strowger tail: the newest calls'],
    rows: await look(),
    columns: columnsOf(true),
    key: ({ id }) => id,
  })
  const opened = ({ id }: Call) => ladderText(db, config, id, terminal().columns ?? 80)
  return browse({ look: view, every_ms, opened })
}

/** `brief`, for people, shortens ids and times. */
const columnsOf = (brief: boolean): Column<Call>[] => [
  { title: 'TIME', text: ({ at }) => (brief ? at.slice(11, 19) : at) },
  { title: 'CALL', text: ({ id }) => (brief ? shortId(id) : id), least: 8 },
  { title: 'STATUS', text: ({ status }) => status, states: true },
  { title: 'FROM', text: ({ from }) => from, least: 10, rank: 1 },
  { title: 'TO', text: ({ to }) => to, least: 8 },
  { title: 'REASON', text: ({ reason }) => reason ?? '-', rank: 1 },
  { title: 'DIRECTION', text: ({ direction }) => direction, rank: 3 },
]
