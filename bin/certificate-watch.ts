import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import type { KeyPair, TlsOptions } from '../core/runtime/certificate.ts'
import type { Clock } from '../core/runtime/clock.ts'
import type { Log } from '../core/runtime/log.ts'

/** Short next to the weeks between two renewals, long next to the reading of a few small files. */
const PERIOD_MS = 10_000

interface CertificateWatch {
  /** Looks now, not only at the next period. Resolves when it has looked. */
  look(): Promise<void>
  stop(): void
}

/**
 * Looks at the files of certificates again and again, and calls `renewed` with those that differ from before and fit
 * together. The first look finds out what stands there. The supervisor watches, because the processes that use the keys
 * can no longer read them. It reads files and does not watch folders: tools for renewal replace links whose targets lie
 * elsewhere.
 */
export function watchCertificates(options: {
  readonly load: () => Promise<TlsOptions>
  readonly clock: Clock
  readonly log: Log
  readonly renewed: (tls: TlsOptions) => void
}): CertificateWatch {
  const { load, clock, log, renewed } = options
  let known: string | null = null
  let complaint = ''
  const lookOnce = async (): Promise<void> => {
    try {
      const found = await load()
      const text = JSON.stringify(found)
      if (text === known) return
      // What stands there at the start, the processes read themselves, and refuse.
      const at_start = known === null
      if (!at_start) refuseUnfit(found)
      known = text
      complaint = ''
      if (at_start) return
      renewed(found)
      log.info({ certificates: [found, ...Object.values(found.names ?? {})].map(namesOf) }, 'certificates were renewed')
    } catch (err) {
      // While a tool replaces the files, a certificate may stand beside the key of the one before.
      const { message } = err as Error
      if (message !== complaint) log.warn({ err }, 'the new certificates cannot be used; the old ones stay in use')
      complaint = message
    }
  }
  // One look at a time: two would pass the same renewal on twice.
  let running = Promise.resolve()
  const look = (): Promise<void> => {
    running = running.then(lookOnce)
    return running
  }
  const timer = clock.every(PERIOD_MS, () => void look())
  return { look, stop: () => timer.cancel() }
}

/** @throws when a certificate cannot be read, or is not of its key */
function refuseUnfit({ names = {}, ca, peers_ca, ...own }: TlsOptions): void {
  for (const { key, cert } of [own, ...Object.values(names)]) {
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
      throw new Error(`the key is not that of the certificate ${new X509Certificate(cert).subject}`)
    createSecureContext({ key, cert })
  }
  for (const authorities of [ca, peers_ca]) if (authorities !== undefined) createSecureContext({ ca: authorities })
}

const namesOf = ({ cert }: KeyPair) => {
  const { subject, validTo } = new X509Certificate(cert)
  return { subject, valid_to: validTo }
}
