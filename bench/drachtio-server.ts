import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { addressesOf, loadConfig } from '../core/runtime/config.ts'
import { tlsOptions } from '../signaling/edge/certificates.ts'

/** The drachtio-server program that tests and benchmarks start instead of the embedded edge; null for the edge. */
export const DRACHTIO_PROGRAM = process.env['STROWGER_TEST_DRACHTIO'] || null

const UP_LIMIT_MS = 20_000
const AGAIN_MS = 200

interface DrachtioServer {
  /** Settings that make a platform use this server. */
  readonly env: Readonly<Record<string, string>>
  stop(): Promise<void>
}

/**
 * Starts a drachtio-server on the addresses and ports of these settings. As for the embedded edge, `run/edge.pid` in
 * the data folder holds its pid, and it is restarted when it ends.
 */
export async function startDrachtioServer(
  program: string,
  settings: Readonly<Record<string, string>>,
  control_port: number,
): Promise<DrachtioServer> {
  const config = loadConfig(settings)
  const secret = randomBytes(16).toString('hex')
  mkdirSync(config.run_dir, { recursive: true, mode: 0o700 })
  const file = (name: string): string => join(config.run_dir, name)
  const { key, cert } = await tlsOptions(config)
  writeFileSync(file('drachtio-key.pem'), key, { mode: 0o600 })
  writeFileSync(file('drachtio-cert.pem'), cert)
  const contacts = addressesOf(config).flatMap(({ host }) => {
    const at = host.includes(':') ? `[${host}]` : host
    return [
      `sip:${at}:${config.sip_port};transport=udp,tcp`,
      `sips:${at}:${config.sips_port};transport=tls`,
      `sip:${at}:${config.ws_port};transport=ws`,
    ]
  })
  writeFileSync(
    file('drachtio.conf.xml'),
    `<drachtio>
  <admin port="${control_port}" secret="${secret}">127.0.0.1</admin>
  <sip>
    <contacts>${contacts.map(contact => `<contact>${contact}</contact>`).join('')}</contacts>
    <tls><key-file>${file('drachtio-key.pem')}</key-file><cert-file>${file('drachtio-cert.pem')}</cert-file><chain-file>${file('drachtio-cert.pem')}</chain-file></tls>
  </sip>
  <logging><console/><sofia-loglevel>3</sofia-loglevel><loglevel>notice</loglevel></logging>
</drachtio>
`,
    { mode: 0o600 },
  )
  let stopped = false
  let child: ChildProcess
  const begin = (): void => {
    const log = openSync(file('drachtio.log'), 'a')
    child = spawn('setpriv', ['--pdeathsig', 'KILL', program, '-f', file('drachtio.conf.xml')], {
      env: { PATH: process.env['PATH'] ?? '' },
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    writeFileSync(file('edge.pid'), String(child.pid))
    child.once('exit', () => {
      if (!stopped) setTimeout(() => stopped || begin(), AGAIN_MS).unref()
    })
  }
  begin()
  try {
    // Wait for all ports: the control port opens before the SIP ports, even in a server that then fails to open those.
    await accepts('127.0.0.1', control_port)
    for (const { host } of addressesOf(config))
      for (const port of [config.sip_port, config.sips_port, config.ws_port]) await accepts(host, port)
  } catch (error) {
    const printed = existsSync(file('drachtio.log')) ? readFileSync(file('drachtio.log'), 'utf8') : ''
    throw new Error(`${program} does not start: ${printed}`, { cause: error })
  }
  return {
    env: { STROWGER_DRACHTIO: `127.0.0.1:${control_port}`, STROWGER_DRACHTIO_SECRET: secret },
    async stop() {
      stopped = true
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = new Promise(resolve => child.once('exit', resolve))
      child.kill('SIGKILL')
      await ended
    },
  }
}

async function accepts(host: string, port: number): Promise<void> {
  const deadline = performance.now() + UP_LIMIT_MS
  for (;;) {
    const open = await new Promise<boolean>(resolve => {
      const socket = connect(port, host)
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
      socket.once('close', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (open) return
    if (performance.now() > deadline) throw new Error(`nobody listens on ${host}:${port}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}
