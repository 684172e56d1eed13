import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, createServer, type Server, type TLSSocket } from 'node:tls'
import { type Clock, systemClock } from '../core/runtime/clock.ts'
import { loadConfig, VARIABLES } from '../core/runtime/config.ts'
import { jsonLine, readJsonLines } from '../core/runtime/json-lines.ts'
import { MACHINE_TLS } from '../core/runtime/machine-tls.ts'
import { makePrivateFolder } from '../core/runtime/private-files.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { endpoint } from '../core/runtime/variable-values.ts'
import type { Environment } from '../core/runtime/variables.ts'
import { DATABASE_FILE } from '../core/state/index.ts'
import { thisInstallation } from './installation.ts'
import { tell } from './terminal.ts'
import { sharedNames } from './this-machine.ts'

// A machine that joins gets the master key and the shared settings from one that runs. The command `cluster token`
// hands them over itself, once and for a quarter of an hour: TLS with the token as its pre-shared key (RFC 5489), which
// proves both ends. No process of the platform listens for it.

/** How long a token is good. */
export const TOKEN_MS = 15 * 60_000
const HANDSHAKE_MS = 5000
const ANSWER_MS = 10_000
const IDENTITY = 'strowger join'
const TOKEN = /^[\w-]{43}$/

/** What a machine that joins gets. */
interface Handover {
  /** In hex. */
  readonly master_key: string
  /** Variables by name, as text. */
  readonly settings: Readonly<Record<string, string>>
}

/** The settings of this machine that all of them share, and how the state and the store of files are reached. */
export function handoverOf(env: Environment, master_key: Buffer): Handover {
  const names = [...sharedNames(), VARIABLES.database_url.name].filter(name => name !== VARIABLES.master_key.name)
  const given = names.flatMap(name => {
    const text = env[name]?.trim()
    return text ? [[name, text] as const] : []
  })
  return { master_key: master_key.toString('hex'), settings: Object.fromEntries(given) }
}

interface Offer {
  readonly port: number
  readonly token: string
  /** Resolves with the address of the machine that has joined; null when the token has ended before. */
  readonly joined: Promise<string | null>
  close(): void
}

/** Makes the secret of a token. A command line takes a token with a leading dash for an option. */
function newSecret(): Buffer {
  for (;;) {
    const secret = randomBytes(32)
    if (!secret.toString('base64url').startsWith('-')) return secret
  }
}

/** Offers what `give` returns to the first machine that has the token. */
export async function offerHandover(
  at: { readonly host: string; readonly port: number },
  { give, clock }: { readonly give: () => Handover; readonly clock: Clock },
): Promise<Offer> {
  const secret = newSecret()
  let taken = false
  let settle: (from: string | null) => void = () => undefined
  const joined = new Promise<string | null>(resolve => {
    settle = resolve
  })
  const server: Server = createServer({
    ...MACHINE_TLS,
    handshakeTimeout: HANDSHAKE_MS,
    pskCallback: (_socket, identity) => (identity === IDENTITY && !taken ? secret : null),
  })
  server.maxConnections = 16
  // Whoever does not know the token is refused by the handshake.
  server.on('tlsClientError', () => undefined)
  server.on('secureConnection', socket => {
    socket.on('error', () => undefined)
    if (taken) {
      socket.destroy()
      return
    }
    taken = true
    const from = socket.remoteAddress ?? 'unknown'
    socket.end(jsonLine(give()), () => settle(from))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(at.port, at.host, resolve)
  })
  const address = server.address()
  const late = clock.after(TOKEN_MS, () => settle(null))
  const close = (): void => {
    late.cancel()
    server.close()
  }
  return {
    port: typeof address === 'object' && address ? address.port : at.port,
    token: secret.toString('base64url'),
    joined: joined.finally(close),
    close,
  }
}

/** Asks the machine that has made a token for its handover. @throws StartRefused */
export async function askForHandover(
  at: { readonly host: string; readonly port: number },
  token: string,
  clock: Clock,
): Promise<Handover> {
  if (!TOKEN.test(token)) throw new StartRefused('this is not a token of `strowger cluster token`')
  const psk = Buffer.from(token, 'base64url')
  const refused = (why: string): StartRefused =>
    new StartRefused(
      `${at.host}:${at.port} hands nothing over (${why}): a token is good once, for 15 minutes, while its command runs`,
    )
  return await new Promise((resolve, reject) => {
    const socket: TLSSocket = connect({
      ...MACHINE_TLS,
      ...at,
      pskCallback: () => ({ psk, identity: IDENTITY }),
      // The token proves the other end.
      checkServerIdentity: () => undefined,
    })
    const late = clock.after(ANSWER_MS, () => socket.destroy(new Error('no answer')))
    socket.on('error', err => reject(refused(err.message)))
    socket.on('close', () => {
      late.cancel()
      reject(refused('the connection was closed'))
    })
    readJsonLines(socket, value => {
      resolve(value as Handover)
      socket.end()
    })
  })
}

/** Refuses to make a machine with an installation of its own a part of another one. @throws StartRefused */
function refuseOwnInstallation(data_dir: string, env: Environment, { master_key }: Handover): void {
  const file = join(data_dir, 'master.key')
  const own = env[VARIABLES.master_key.name]?.trim() || (existsSync(file) ? readFileSync(file, 'utf8').trim() : null)
  if (own !== null && own.toLowerCase() !== master_key)
    throw new StartRefused(`this machine has a master key of its own in ${file}: join with an empty data folder`)
  if (existsSync(join(data_dir, DATABASE_FILE)))
    throw new StartRefused(`${data_dir} has an installation of its own: join with an empty data folder`)
}

/** Writes what a machine has got, for its user alone. Returns the names of the settings. @throws StartRefused */
export function keepHandover(
  data_dir: string,
  env: Environment,
  handover: Handover,
  settings_file: string,
): readonly string[] {
  refuseOwnInstallation(data_dir, env, handover)
  if (existsSync(settings_file)) throw new StartRefused(`${settings_file} exists: name another file by --settings`)
  makePrivateFolder(data_dir)
  const own = { mode: 0o600 }
  writeFileSync(join(data_dir, 'master.key'), `${handover.master_key}\n`, own)
  const lines = Object.entries(handover.settings).map(([name, text]) => `${name}=${quoted(text)}\n`)
  writeFileSync(settings_file, lines.join(''), { ...own, flag: 'wx' })
  return Object.keys(handover.settings)
}

/** As systemd and Node.js read it back. */
const quoted = (text: string): string => {
  if (/^[\w@%+=:,./?&-]*$/.test(text)) return text
  return text.includes("'") ? `"${text.replace(/(["\\$`])/g, '\\$1')}"` : `'${text}'`
}

/** The command of the machine that runs. */
export async function makeToken(listen: string | undefined): Promise<void> {
  const { env } = thisInstallation()
  const config = loadConfig(env)
  if (config.database_url === null)
    throw new StartRefused(
      'machines share a database of PostgreSQL: move this installation first, by `strowger migrate to-postgres`',
    )
  const at = listen === undefined ? config.link && { host: config.link.host, port: 0 } : endpoint(listen, '--listen')
  if (!at) throw new StartRefused(`${VARIABLES.link.name} is not set: name an address of this machine by --listen`)
  const offer = await offerHandover(at, { give: () => handoverOf(env, config.master_key), clock: systemClock })
  tell(`on the new machine, within 15 minutes:\n\n  strowger cluster join ${at.host}:${offer.port} ${offer.token}\n\n`)
  const from = await offer.joined
  if (from === null) throw new StartRefused('no machine has joined within 15 minutes: the token has ended')
  tell(`the machine at ${from} has the master key and the shared settings\n`)
}

/** What a machine has got, and where it is. */
interface Joined {
  readonly key_file: string
  readonly settings_file: string
  readonly settings: readonly string[]
}

/** The command of the new machine. @throws StartRefused */
export async function joinMachines(address: string, token: string, settings: string | undefined): Promise<Joined> {
  const at = endpoint(address, 'the address')
  if (!at) throw new StartRefused('the address is missing: HOST:PORT')
  const { env, data_dir } = thisInstallation()
  const settings_file = settings ?? join(data_dir, 'cluster.env')
  const names = keepHandover(data_dir, env, await askForHandover(at, token, systemClock), settings_file)
  return { key_file: join(data_dir, 'master.key'), settings_file, settings: names }
}

export const sentencesOn = ({ key_file, settings_file, settings }: Joined): string[] => [
  `the master key is in ${key_file}`,
  `${settings.length} settings are in ${settings_file}: ${settings.join(', ')}`,
  'add them to the settings of this machine, with its own STROWGER_HOST, STROWGER_BIND and STROWGER_LINK, and start it',
]
