import { Command, InvalidArgumentError, Option } from 'commander'
import { parseNetwork } from '../core/domain/identity/address.ts'
import { iso } from '../core/runtime/clock.ts'
import { StartRefused } from '../core/runtime/lifecycle.ts'
import { addCarrier, enableCarrier, listCarriers, removeCarrier } from '../core/state/carriers.ts'
import { ring, withState } from './state.ts'

interface AddOptions {
  readonly source: string[]
  readonly target: string[]
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly route: { prefix: string; priority: number; cost_minor: number }[]
  readonly codecs: string[]
}

const CODECS = ['PCMU', 'PCMA', 'G722', 'G729', 'OPUS']

const gather =
  <T>(read: (text: string) => T) =>
  (text: string, before: T[]): T[] => [...before, read(text)]

const network = (text: string): string => {
  if (!parseNetwork(text)) throw new InvalidArgumentError('expected an address or a CIDR such as 203.0.113.0/24')
  return text
}

const sipUri = (text: string): string => {
  if (!/^sips?:([^@\s]+@)?[^\s@]+$/.test(text)) throw new InvalidArgumentError('expected sip:HOST[:PORT]')
  return text
}

/** `PREFIX[:PRIORITY[:COST]]`; `any` is every number. */
const route = (text: string) => {
  const match = /^(any|\+?\d{1,15})(?::(\d{1,6}))?(?::(\d{1,9}))?$/.exec(text)
  if (!match) throw new InvalidArgumentError('expected PREFIX[:PRIORITY[:COST_MINOR]], PREFIX may be `any`')
  const [, prefix = '', priority = '10', cost = '0'] = match
  return {
    prefix: prefix === 'any' ? '' : prefix.replace('+', ''),
    priority: Number(priority),
    cost_minor: Number(cost),
  }
}

const codecList = (text: string): string[] => {
  const names = text.toUpperCase().split(',')
  const unknown = names.find(name => !CODECS.includes(name))
  if (unknown !== undefined) throw new InvalidArgumentError(`${unknown} is none of ${CODECS.join(', ')}`)
  return names
}

export function carriersCommand(): Command {
  const command = new Command('carriers').description("the operator's own connections to the telephone network")
  command
    .command('list')
    .description('every carrier with its sources, targets and routes')
    .option('--json', 'as JSON')
    .action((options: { json?: boolean }) =>
      withState(async state => {
        const carriers = await listCarriers(state.db)
        if (options.json) process.stdout.write(`${JSON.stringify(carriers)}\n`)
        else for (const carrier of carriers) process.stdout.write(`${describe(carrier)}\n`)
      }),
    )
  command
    .command('add')
    .description('add a carrier')
    .argument('<name>')
    .option('--source <cidr>', 'network from which its INVITEs come; repeatable', gather(network), [])
    .option('--target <uri>', 'where to send calls, sip:HOST[:PORT]; repeatable, in order', gather(sipUri), [])
    .addOption(new Option('--transport <name>', 'of the targets').choices(['udp', 'tcp', 'tls']).default('udp'))
    .option('--route <prefix>', 'PREFIX[:PRIORITY[:COST_MINOR]]; repeatable', gather(route), [])
    .option('--codecs <list>', 'in order of preference', codecList, ['PCMU', 'PCMA'])
    .action((name: string, options: AddOptions) =>
      withState(async (state, config) => {
        const targets = options.target.map((sip_uri, index) => ({
          sip_uri,
          transport: options.transport,
          priority: index + 1,
          weight: 100,
        }))
        const { source: sources, route: routes, codecs } = options
        const id = await addCarrier(state, { name, codecs, sources, targets, routes }, iso(Date.now()))
        await ring(config, 'configuration', id)
        process.stdout.write(`${id}\n`)
      }),
    )
  for (const [name, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const)
    command
      .command(name)
      .description(`${name} a carrier for new calls`)
      .argument('<id>')
      .action((id: string) => change(id, state => enableCarrier(state, id, enabled)))
  command
    .command('remove')
    .description('remove a carrier; its running calls go on')
    .argument('<id>')
    .action((id: string) => change(id, state => removeCarrier(state, id)))
  return command
}

const change = (id: string, act: (state: Parameters<typeof removeCarrier>[0]) => Promise<boolean>): Promise<void> =>
  withState(async (state, config) => {
    if (!(await act(state))) throw new StartRefused(`there is no carrier ${id}`)
    await ring(config, 'configuration', id)
  })

const describe = (carrier: Awaited<ReturnType<typeof listCarriers>>[number]): string =>
  [
    `${carrier.id}  ${carrier.name}${carrier.enabled ? '' : ' (disabled)'}  ${carrier.codecs.join(',')}`,
    ...carrier.sources.map(cidr => `  from   ${cidr}`),
    ...carrier.targets.map(target => `  to     ${target.sip_uri} ${target.transport} priority ${target.priority}`),
    ...carrier.routes.map(row => `  route  ${row.prefix || 'any'} priority ${row.priority} cost ${row.cost_minor}`),
  ].join('\n')
