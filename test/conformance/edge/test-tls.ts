import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadCertificate } from '../../../core/runtime/certificate.ts'

/** Returns a key and a certificate for 127.0.0.1, made as on a first start. */
export async function testTls(): Promise<{ readonly key: string; readonly cert: string }> {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-edge-tls-'))
  try {
    const { key, cert } = await loadCertificate({ tls: null, data_dir, domain: 'localhost', host: '127.0.0.1' })
    return { key: key.toString(), cert: cert.toString() }
  } finally {
    rmSync(data_dir, { recursive: true, force: true })
  }
}
