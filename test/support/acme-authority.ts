import { spawn } from 'node:child_process'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { testTls } from '../conformance/edge/test-tls.ts'
import type { Test } from './harness/index.ts'
import { freePort } from './ports.ts'
import { until } from './wait.ts'

/** Where an authority looks for proof: the address to which all names lead at first, and its ports. */
interface Asked {
  readonly address?: string
  readonly http_port: number
  readonly tls_port: number
}

/**
 * Starts Pebble, the ACME authority of Let's Encrypt for tests, and its DNS server. It refuses one nonce of five.
 * Returns its directory, the certificate of its API, and what lets all names lead to another address.
 */
export async function acmeAuthority(t: Test, { address = '127.0.0.1', http_port, tls_port }: Asked) {
  const folder = t.testdir()
  const { key, cert } = await testTls()
  const [port, managed, dns, dns_managed] = await Promise.all([freePort(), freePort(), freePort(), freePort()])
  const listen = { listenAddress: `127.0.0.1:${port}`, managementListenAddress: `127.0.0.1:${managed}` }
  const files = { certificate: join(folder, 'cert.pem'), privateKey: join(folder, 'key.pem') }
  writeFileSync(files.certificate, cert)
  writeFileSync(files.privateKey, key)
  const pebble = { ...listen, ...files, httpPort: http_port, tlsPort: tls_port, ocspResponderURL: '' }
  writeFileSync(join(folder, 'pebble.json'), JSON.stringify({ pebble }))
  const start = (command: string, words: readonly string[], env = {}): void => {
    const child = spawn(command, words, { env: { PATH: process.env['PATH'], ...env }, stdio: 'ignore' })
    t.teardown(() => {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      return ended
    })
  }
  const none = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-defaultIPv6', '', '-defaultIPv4', address]
  start('pebble-challtestsrv', ['-dns01', `127.0.0.1:${dns}`, '-management', `127.0.0.1:${dns_managed}`, ...none])
  const words = ['-config', join(folder, 'pebble.json'), '-dnsserver', `127.0.0.1:${dns}`]
  start('pebble', words, { PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '20', PEBBLE_AUTHZREUSE: '0' })
  const resolver = new Resolver({ timeout: 1000, tries: 1 })
  resolver.setServers([`127.0.0.1:${dns}`])
  await until('its DNS server answers', () => resolver.resolve4('any.example.test').catch(() => undefined))
  await until('the authority listens', () => listens(port))
  const leadTo = async (ip: string): Promise<void> => {
    const request = { method: 'POST', body: JSON.stringify({ ip }) }
    const { status } = await fetch(`http://127.0.0.1:${dns_managed}/set-default-ipv4`, request)
    if (status !== 200) throw new Error(`the DNS server answers ${status}`)
  }
  return { directory: `https://127.0.0.1:${port}/dir`, ca: cert, leadTo }
}

const listens = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
