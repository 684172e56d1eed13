import { Command } from 'commander'
import { counted } from '../core/domain/text/counted.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { auditTrails, verifyChain } from '../core/state/people/audit.ts'
import { print } from './operator-print.ts'
import { ask } from './operator-route.ts'
import { withState } from './state.ts'
import { give, tell } from './terminal.ts'

interface VerifyOptions {
  readonly organization?: string
  readonly expect?: string
  readonly json?: boolean
}

interface ListOptions {
  readonly organization?: string
  readonly limit: string
  readonly json?: boolean
}

export function auditCommand(): Command {
  const command = new Command('audit')
  command
    .command('verify')
    .description(
      'check the hash chain of every event, while the platform runs or not; exit code 1: it was tampered with',
    )
    .option('--organization <id>', 'of this organization alone')
    .option('--expect <hash>', 'the head that an earlier run printed must be in the chain; needs --organization')
    .option('--json', 'as JSON, a line for each trail')
    .action((options: VerifyOptions) => withState(({ db }) => verify(db, options)))
  command
    .command('list')
    .description('events of the installation, or of one organization, newest first')
    .option('--organization <id>', 'of this organization')
    .option('--limit <count>', 'at most so many', '50')
    .option('--json', 'as JSON')
    .action(async ({ organization, limit, json }: ListOptions) => {
      const query = { range: 'all', limit, ...(organization === undefined ? {} : { organization_id: organization }) }
      const { data } = await ask('get /audit', { query })
      const events = data.map(({ id, at, actor, summary, action, detail }) => ({
        id,
        at,
        by: actor.name,
        summary,
        action,
        detail,
      }))
      print(json ? data : events, json === true ? { json } : {})
    })
  return command
}

async function verify(
  db: Parameters<typeof verifyChain>[0],
  { organization, expect, json }: VerifyOptions,
): Promise<void> {
  if (expect !== undefined && organization === undefined) throw new StartRefused('--expect needs --organization')
  const all = await auditTrails(db)
  const chosen = organization === undefined ? all : all.filter(({ id }) => id === organization)
  if (chosen.length === 0) throw new StartRefused(`there is no organization ${organization ?? ''}`)
  let broken = 0
  for (const { id, name } of chosen) {
    const check = await verifyChain(db, id, expect)
    const found = check.intact
      ? `intact, ${counted(check.events, 'event')}, head ${check.head}`
      : `NOT INTACT at ${check.event_id ?? 'its end'} (event ${check.events}): ${check.why}`
    if (json) give(`${JSON.stringify({ organization_id: id, name, ...check })}\n`)
    else tell(`${id} (${name}): ${found}\n`)
    if (!check.intact) broken += 1
  }
  if (broken > 0) throw new StartRefused(`${broken} of ${chosen.length} audit trails were tampered with`)
}
