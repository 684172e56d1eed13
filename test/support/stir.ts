import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from './harness/index.ts'

/** A test's own certificate authority, with leaf certificates that sign callers and serve certificates by https. */
interface Authority {
  readonly ca_file: string
  readonly ca_pem: string
  /** The certificate that signs callers. */
  readonly cert_file: string
  readonly key_file: string
  /** Returns the URL `https://127.0.0.1:<port>/<name>`, which serves the PEM text of that name in `served`. */
  readonly x5u: (name: string) => string
  readonly served: Map<string, string>
  readonly asked: () => number
  file(name: string): string
  /** Issues another certificate, by this authority or by `by`. */
  leaf(name: string, options?: LeafOptions): void
}

interface LeafOptions {
  readonly by?: string
  readonly may_issue?: boolean
}

export async function authority(t: Test): Promise<Authority> {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-stir-'))
  const file = (name: string): string => join(folder, name)
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const root = (name: string): void =>
    openssl(
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30'],
      ...['-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.pem`],
    )
  const leaf = (name: string, { by = 'ca', may_issue = false }: LeafOptions = {}): void => {
    openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', `${name}.key`)
    openssl('req', '-new', '-key', `${name}.key`, '-subj', `/CN=SHAKEN ${name}`, '-out', `${name}.csr`)
    writeFileSync(file('ext'), `subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:${may_issue ? 'TRUE' : 'FALSE'}\n`)
    const serial = String(Math.floor(Math.random() * 1e9) + 1)
    const signing = ['-CA', `${by}.pem`, '-CAkey', `${by}.key`, '-set_serial', serial, '-extfile', 'ext']
    openssl('x509', '-req', '-in', `${name}.csr`, ...signing, '-days', '30', '-out', `${name}.pem`)
  }
  root('ca')
  root('other')
  leaf('web')
  leaf('signer')
  const served = new Map<string, string>([['signer', readFileSync(file('signer.pem'), 'utf8')]])
  let asked = 0
  const server = createServer(
    { cert: readFileSync(file('web.pem')), key: readFileSync(file('web.key')) },
    (request, response) => {
      asked++
      const body = served.get((request.url ?? '').slice(1))
      response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/pem-certificate-chain' })
      response.end(body ?? '')
    },
  )
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    await new Promise<void>(resolve => server.close(() => resolve()).closeAllConnections())
    rmSync(folder, { recursive: true, force: true })
  })
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    ca_file: file('ca.pem'),
    ca_pem: readFileSync(file('ca.pem'), 'utf8'),
    cert_file: file('signer.pem'),
    key_file: file('signer.key'),
    x5u: name => `https://127.0.0.1:${port}/${name}`,
    served,
    asked: () => asked,
    file,
    leaf,
  }
}
