import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createClient } from '@redis/client'
import type { Test } from './harness/index.ts'
import { freePort } from './ports.ts'

const run = promisify(execFile)

interface Given {
  readonly password?: string
  readonly tls?: boolean
}

/** Starts Debian's Redis server in a folder of its own. It keeps nothing, and breaks off and comes back as told. */
export async function redisServer(t: Test, { password, tls = false }: Given = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-redis-'))
  const port = await freePort()
  const authority = join(folder, 'cert.pem')
  const words = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder]
  if (password !== undefined) words.push('--requirepass', password)
  if (tls) {
    const key = join(folder, 'key.pem')
    await selfSigned(key, authority)
    const files = ['--tls-cert-file', authority, '--tls-key-file', key, '--tls-ca-cert-file', authority]
    words.push('--port', '0', '--tls-port', `${port}`, '--tls-auth-clients', 'no', ...files)
  } else words.push('--port', `${port}`)
  let server: ChildProcess | null = null
  const comeBack = async (): Promise<void> => {
    // The kernel ends the server with this process, which may be killed.
    server = spawn('setpriv', ['--pdeathsig', 'KILL', 'redis-server', ...words], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await accepts(server)
  }
  const breakOff = async (): Promise<void> => {
    if (server) await ended(server)
  }
  t.teardown(async () => {
    await breakOff()
    rmSync(folder, { recursive: true, force: true })
  })
  await comeBack()
  const secret = password === undefined ? '' : `:${encodeURIComponent(password)}@`
  return {
    url: `${tls ? 'rediss' : 'redis'}://${secret}127.0.0.1:${port}`,
    port,
    /** The certificate of its authority, with TLS. */
    authority,
    comeBack,
    breakOff,
    /** Makes it stand still, as a machine that has lost its network looks; a second call lets it go on. */
    signal: (signal: 'SIGSTOP' | 'SIGCONT') => server?.kill(signal),
  }
}

/** Runs one command and returns its reply. */
export async function tellRedis(url: string, ...words: readonly string[]): Promise<unknown> {
  const client = createClient({ url, maintNotifications: 'disabled' })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await client.sendCommand([...words])
  } finally {
    client.destroy()
  }
}

async function selfSigned(key: string, certificate: string): Promise<void> {
  const names = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
  await run('openssl', ['req', '-x509', ...kind, '-keyout', key, '-out', certificate, ...names])
}

/** Resolves when the server takes connections. */
function accepts(server: ChildProcess): Promise<void> {
  let printed = ''
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.once('exit', () => reject(new Error(`Redis has ended: ${printed}`)))
    server.stdout?.setEncoding('utf8').on('data', text => {
      printed = (printed + text).slice(-10_000)
      if (/Ready to accept connections/i.test(printed)) resolve()
    })
  })
}

async function ended(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const gone = new Promise(resolve => server.once('exit', resolve))
  server.kill('SIGKILL')
  await gone
}
