import { Command, InvalidArgumentError, Option } from 'commander'
import { describePlan, tlsText } from '../core/domain/carriers/plan.ts'
import { CODEC_NAMES } from '../core/domain/codecs/codec.ts'
import { parseNetwork } from '../core/domain/identity/address.ts'
import { readFingerprint } from '../core/domain/network/tls-verification.ts'
import { iso } from '../core/runtime/clock.ts'
import type { Config } from '../core/runtime/config.ts'
import { StartRefused } from '../core/runtime/lifecycle.ts'
import { seal } from '../core/runtime/secrets.ts'
import { setCarrierRegistration } from '../core/state/configuration/carrier-registrations.ts'
import {
  addCarrier,
  applyCarriers,
  enableCarrier,
  listCarriers,
  removeCarrier,
} from '../core/state/configuration/carriers.ts'
import type { State } from '../core/state/index.ts'
import { readCarriersFile } from './carriers-file.ts'
import { ring, withState } from './state.ts'

interface TlsOptions {
  readonly tlsVerification: 'required' | 'pinned' | 'off'
  readonly tlsFingerprint?: string | null
}

interface AddOptions extends TlsOptions {
  readonly source: string[]
  readonly target: string[]
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly route: { prefix: string; priority: number; cost_minor: number }[]
  readonly codecs: string[]
}

interface RegisterOptions extends TlsOptions {
  readonly registrar: string
  readonly username: string
  readonly contactUser?: string
  readonly expires: number
  readonly transport: 'udp' | 'tcp' | 'tls'
}

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

/** Parses `PREFIX[:PRIORITY[:COST]]`. The prefix `any` matches every number. */
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

const registrarUri = (text: string): string => {
  if (!/^sip:[^@\s;?<>"]+$/i.test(text)) throw new InvalidArgumentError('expected sip:HOST[:PORT]')
  return text
}

const username = (text: string): string => {
  if (!/^[^\s@:;<>"]{1,120}$/.test(text)) throw new InvalidArgumentError('expected the user part of a SIP address')
  return text
}

const fingerprint = (text: string): string => {
  const digits = readFingerprint(text)
  if (digits === null) throw new InvalidArgumentError('expected a SHA-256 fingerprint, 64 hexadecimal digits')
  return digits
}

/** Adds the options for the verification of a peer's certificate. */
const withTls = (command: Command): Command =>
  command
    .addOption(
      new Option('--tls-verification <how>', 'of its certificate; required: by chain and name')
        .choices(['required', 'pinned', 'off'])
        .default('required'),
    )
    .option('--tls-fingerprint <sha256>', 'of the certificate that is pinned', fingerprint)

function tlsOf({ tlsVerification: tls_verification, tlsFingerprint: tls_fingerprint = null }: TlsOptions) {
  if ((tls_verification === 'pinned') !== (tls_fingerprint !== null))
    throw new StartRefused('--tls-verification pinned and --tls-fingerprint go together')
  return { tls_verification, tls_fingerprint }
}

const lifetime = (text: string): number => {
  const seconds = Number(text)
  if (!/^\d{1,5}$/.test(text) || seconds < 60 || seconds > 86_400)
    throw new InvalidArgumentError('expected seconds from 60 to 86400')
  return seconds
}

async function standardInput(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

const codecList = (text: string): string[] => {
  const names = text.toUpperCase().split(',')
  const unknown = names.find(name => !CODEC_NAMES.some(codec => codec === name))
  if (unknown !== undefined) throw new InvalidArgumentError(`${unknown} is none of ${CODEC_NAMES.join(', ')}`)
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
  withTls(command.command('add'))
    .description('add a carrier')
    .argument('<name>')
    .option('--source <cidr>', 'network from which its INVITEs come; repeatable', gather(network), [])
    .option('--target <uri>', 'where to send calls, sip:HOST[:PORT]; repeatable, in order', gather(sipUri), [])
    .addOption(new Option('--transport <name>', 'of the targets').choices(['udp', 'tcp', 'tls']).default('udp'))
    .option('--route <prefix>', 'PREFIX[:PRIORITY[:COST_MINOR]]; repeatable', gather(route), [])
    .option('--codecs <list>', 'in order of preference', codecList, ['PCMU', 'PCMA'])
    .action((name: string, options: AddOptions) =>
      withState(async (state, config) => {
        const tls = tlsOf(options)
        const targets = options.target.map((sip_uri, index) => ({
          sip_uri,
          transport: options.transport,
          priority: index + 1,
          weight: 100,
          ...tls,
        }))
        const { source: sources, route: routes, codecs } = options
        const id = await addCarrier(state, { name, codecs, sources, targets, routes }, iso(Date.now()))
        await ring(config, 'configuration')
        process.stdout.write(`${id}\n`)
      }),
    )
  command
    .command('apply')
    .description(
      'bring the carriers to what a file says (JSON); shows what changes, and with --yes does it, all or nothing',
    )
    .argument('<file>')
    .option('--yes', 'do it')
    .option('--prune', 'remove carriers that the file does not name')
    .action((file: string, { yes = false, prune = false }: { yes?: boolean; prune?: boolean }) =>
      withState(async (state, config) => {
        const steps = await applyCarriers(state, readCarriersFile(file), { prune, dry: !yes, now: iso(Date.now()) })
        for (const line of describePlan(steps)) process.stdout.write(`${line}\n`)
        if (steps.length === 0) process.stdout.write('nothing changes\n')
        else if (yes) await ring(config, 'configuration')
        else process.stdout.write('nothing was changed yet; --yes does it\n')
      }),
    )
  withTls(command.command('register'))
    .description('register with a carrier, and keep it up')
    .argument('<id>')
    .requiredOption('--registrar <uri>', 'sip:HOST[:PORT], also the domain of the address', registrarUri)
    .requiredOption('--username <name>', 'user of the address and of the digest', username)
    .option('--contact-user <name>', 'user part of our contact; default: the user name', username)
    .option('--expires <seconds>', 'how long a registration is to last, 60 to 86400', lifetime, 3600)
    .addOption(new Option('--transport <name>').choices(['udp', 'tcp', 'tls']).default('udp'))
    .addHelpText('after', '\nThe password is read from standard input, so that it stands in no process list.')
    .action(async (id: string, options: RegisterOptions) => {
      const tls = tlsOf(options)
      const password = (await standardInput()).replace(/\r?\n$/, '')
      if (password === '') throw new StartRefused('expected the password on standard input')
      await change(id, (state, config) =>
        setCarrierRegistration(state, id, {
          registrar: options.registrar,
          transport: options.transport,
          username: options.username,
          password_sealed: seal(config.master_key, password),
          contact_user: options.contactUser ?? options.username,
          expires_seconds: options.expires,
          enabled: 1,
          ...tls,
        }),
      )
    })
  command
    .command('unregister')
    .description('end the registration with a carrier')
    .argument('<id>')
    .action((id: string) => change(id, state => setCarrierRegistration(state, id, null)))
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

type Act = (state: State, config: Config) => Promise<boolean>

const change = (id: string, act: Act): Promise<void> =>
  withState(async (state, config) => {
    if (!(await act(state, config))) throw new StartRefused(`there is no carrier ${id}`)
    await ring(config, 'configuration')
  })

const describe = (carrier: Awaited<ReturnType<typeof listCarriers>>[number]): string =>
  [
    `${carrier.id}  ${carrier.name}${carrier.enabled ? '' : ' (disabled)'}  ${carrier.codecs.join(',')}`,
    ...carrier.sources.map(cidr => `  from   ${cidr}`),
    ...carrier.targets.map(
      target => `  to     ${target.sip_uri} ${target.transport} priority ${target.priority}${tlsText(target)}`,
    ),
    ...carrier.routes.map(row => `  route  ${row.prefix || 'any'} priority ${row.priority} cost ${row.cost_minor}`),
    ...(carrier.registration ? [describeRegistration(carrier.registration)] : []),
  ].join('\n')

function describeRegistration(
  registration: NonNullable<Awaited<ReturnType<typeof listCarriers>>[number]['registration']>,
): string {
  const { registrar, username, state } = registration
  const what = `  register ${username} at ${registrar}${tlsText(registration)}: `
  if (!state) return `${what}not tried yet`
  if (state.state === 'registered') return `${what}registered until ${state.expires_at}`
  const why = state.detail === null ? '' : ` (${state.detail})`
  const next = state.next_try_at === null ? '' : `, next try ${state.next_try_at}`
  return `${what}${state.state}${why}${next}`
}
