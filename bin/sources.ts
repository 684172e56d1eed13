import { Command } from 'commander'
import type { PresentedSource } from '../control/operator/sources.ts'
import { ask, askAll } from './operator-route.ts'
import { give, tell } from './terminal.ts'

interface Json {
  readonly json?: boolean
}

/** Lists trunk sources that are limited, and approves or refuses wide ones (decision 0560). */
export function sourcesCommand(): Command {
  const command = new Command('sources')
  command
    .command('list', { isDefault: true })
    .description('each with its trunk, oldest first')
    .option('--json', 'as JSON')
    .action(list)
  for (const [name, description] of [
    ['approve', 'let a wide source, or one of more than a hundred, count'],
    ['refuse', 'take such a source away'],
  ] as const)
    command
      .command(name)
      .description(description)
      .argument('<source_id>')
      .option('--json', 'as JSON')
      .action(async (source_id: string, options: Json) => {
        await ask(`post /source-approvals/{source_id}/${name}`, { params: { source_id } })
        await list(options)
      })
  return command
}

async function list({ json = false }: Json): Promise<void> {
  const data = (await askAll('get /source-approvals', { query: { limit: '200' } })) as PresentedSource[]
  if (json) give(`${JSON.stringify(data)}\n`)
  else tell(`${data.map(described).join('\n') || 'every source counts as it was written'}\n`)
}

function described({ id, standing, cidr, overlaps, carrier, ...of }: PresentedSource): string {
  const lines = overlaps.map(other => `  overlaps ${other.cidr} of ${trunkOf(other)}`)
  if (carrier) lines.push(`  overruled by ${carrier.cidr} of carrier ${carrier.name}`)
  return [`${id}  ${standing.padEnd(16)} ${cidr.padEnd(18)} ${trunkOf(of)}`, ...lines].join('\n')
}

const trunkOf = (of: Pick<PresentedSource, 'trunk_name' | 'project_id' | 'subaccount_id'>): string =>
  [of.trunk_name, of.project_id, ...(of.subaccount_id === null ? [] : [of.subaccount_id])].join(', ')
