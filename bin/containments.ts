import { Command, InvalidArgumentError, Option } from 'commander'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { print, printTable } from './operator-print.ts'
import { ask, askAll, type ItemOf } from './operator-route.ts'
import { type Column, shortId } from './table.ts'
import { tell, terminal } from './terminal.ts'

const CATEGORIES = ['spend_velocity', 'destination_risk', 'account_compromise']

interface Json {
  readonly json?: boolean
}

interface OpenOptions extends Json {
  readonly trunk?: string
  readonly project?: string
  readonly reason: string
  readonly category: string
  readonly hours: number
}

/** Lists, closes and opens prefixes, and decides requests to open them. */
export function containmentsCommand(): Command {
  const command = new Command('containments')
  command
    .command('list', { isDefault: true })
    .description('what is closed now')
    .option('--json', 'as JSON')
    .action(list)
  command
    .command('open')
    .description('close a prefix')
    .argument('<prefix>', 'such as +88213')
    .option('--trunk <id>', 'of one trunk')
    .option('--project <id>', 'of a whole project')
    .requiredOption('--reason <text>', 'the reason that the customer sees')
    .addOption(new Option('--category <category>').choices(CATEGORIES).default('destination_risk'))
    .option('--hours <hours>', 'how long', hours, 24)
    .option('--json', 'as JSON')
    .action(async (prefix: string, { trunk, project, ...options }: OpenOptions) => {
      const body = {
        prefix,
        reason_category: options.category,
        reason_detail: options.reason,
        expires_in_seconds: Math.round(options.hours * 3600),
        ...(trunk === undefined ? {} : { trunk_id: trunk }),
        ...(project === undefined ? {} : { project_id: project }),
      }
      await ask('post /containments', { body })
      await list(options)
    })
  command
    .command('release')
    .description('open a closed prefix again')
    .argument('<containment_id>')
    .requiredOption('--reason <text>', 'which the customer reads in the audit trail')
    .option('--json', 'as JSON')
    .action(async (containment_id: string, { reason, ...options }: Json & { readonly reason: string }) => {
      await ask('post /containments/{containment_id}/release', { params: { containment_id }, body: { reason } })
      await list(options)
    })
  command
    .command('decide')
    .description('approve or reject the request to open a prefix')
    .argument('<containment_id>')
    .argument('<decision>', 'approve or reject')
    .option('--reason <text>', 'the reason that the customer sees')
    .option('--json', 'as JSON')
    .action(async (typed: string, decision: string, { reason, ...how }: Json & { reason?: string }) => {
      if (decision !== 'approve' && decision !== 'reject') throw new StartRefused('decide approve, or reject')
      const pending = await askAll('get /release-requests', { query: { state: 'pending' } })
      const waiting = pending.filter(({ containment }) => containment?.id.startsWith(typed))
      if (waiting.length > 1) throw new StartRefused(`several requests are about ${typed}: type more of it`)
      const [request] = waiting
      if (!request) throw new StartRefused(`no request waits for a decision about ${typed}`)
      const body = { decision: decision === 'approve' ? 'approved' : 'rejected', reason: reason ?? null }
      await ask('post /release-requests/{request_id}/decide', { params: { request_id: request.id }, body })
      await list(how)
    })
  return command
}

function hours(text: string): number {
  const read = Number(text)
  if (!(read > 0 && read <= 2160)) throw new InvalidArgumentError('expected 1 to 2160')
  return read
}

async function list(options: Json): Promise<void> {
  const rows = await askAll('get /containments', { query: { open: 'true' } })
  if (options.json) return print(rows, options)
  if (rows.length === 0) return tell('no prefix is closed\n')
  printTable(rows, COLUMNS)
  for (const { id, release_request: request } of rows)
    if (request?.state === 'pending')
      tell(`${shownId(id)}: release asked for by ${request.requested_by}: ${request.note}\n`)
}

/** A program gets whole ids, a person the beginning by which every command finds them. */
const shownId = (id: string): string => (terminal().columns === null ? id : shortId(id))

const COLUMNS: readonly Column<ItemOf<'get /containments'>>[] = [
  { title: 'ID', text: row => shownId(row.id) },
  { title: 'PREFIX', text: row => row.prefix },
  { title: 'OF', text: row => row.trunk_name ?? 'all services', least: 8, rank: 1 },
  { title: 'WHY', text: row => `${row.reason_category}: ${row.reason_detail}`, least: 12 },
  { title: 'CASE', text: row => row.case_ref, rank: 2 },
  { title: 'REFUSED', text: row => String(row.rejection_count), right: true, rank: 1 },
  { title: 'UNTIL', text: row => row.expires_at, rank: 1 },
]
