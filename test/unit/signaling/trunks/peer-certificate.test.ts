import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { certificateAt } from '../../../../signaling/trunks/peer-certificate.ts'
import t from '../../../support/harness/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'strowger-peer-'))
t.teardown(() => rmSync(folder, { recursive: true }))

t.test('a trunk test matches certificate names as a call does: a sip: URI takes precedence over DNS names', async t => {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const words = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const names = 'subjectAltName=DNS:host.test,URI:sip:pbx.test'
  execFileSync('openssl', ['req', ...words, '-subj', '/CN=pbx', '-addext', names, '-keyout', key, '-out', cert], {
    stdio: 'pipe',
  })
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, socket => socket.end())
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const way = { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
  t.match(await certificateAt(folder, 'PBX.test', way), {
    subject: 'pbx',
    matches_host: true,
    fingerprint: /^[0-9a-f]{64}$/,
  })
  t.match(await certificateAt(folder, 'host.test', way), { subject: 'pbx', matches_host: false })
})
