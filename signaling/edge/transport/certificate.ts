import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { isIP, isIPv6 } from 'node:net'

// A self-signed certificate (RFC 5280) for TLS and WSS listening points, made on first start when the operator has
// given none. Just enough DER for one ECDSA P-256 certificate with subject alternative names.

export interface KeyAndCertificate {
  /** PEM, PKCS #8. */
  readonly key: string
  /** PEM. */
  readonly cert: string
}

/** Makes a key and a certificate for DNS names and IP addresses. The first name is the subject. */
export function selfSignedCertificate(names: readonly string[], valid_days: number, now_ms: number): KeyAndCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsa_sha256 = sequence(oid('1.2.840.10045.4.3.2'))
  const serial = randomBytes(16)
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x01
  const subject = sequence(set(sequence(oid('2.5.4.3'), tagged(0x0c, Buffer.from(names[0] ?? 'strowger')))))
  const validity = sequence(time(now_ms - 86_400_000), time(now_ms + valid_days * 86_400_000))
  const alternatives = sequence(
    ...names.map(name => (isIP(name) === 0 ? tagged(0x82, Buffer.from(name)) : tagged(0x87, addressBytes(name)))),
  )
  const extensions = tagged(
    0xa3,
    sequence(
      extension('2.5.29.17', alternatives, false),
      // It is its own issuer, so a peer that trusts it must be allowed to treat it as one.
      extension('2.5.29.19', sequence(tagged(0x01, Buffer.from([0xff]))), true),
    ),
  )
  const body = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    tagged(0x02, serial),
    ecdsa_sha256,
    subject,
    validity,
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    extensions,
  )
  const signature = sign('sha256', body, privateKey)
  const certificate = sequence(body, ecdsa_sha256, tagged(0x03, Buffer.concat([Buffer.from([0]), signature])))
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines(certificate.toString('base64'))}\n-----END CERTIFICATE-----\n`,
  }
}

function tagged(tag: number, content: Buffer): Buffer {
  const n = content.length
  const head = n < 128 ? [tag, n] : n < 256 ? [tag, 0x81, n] : [tag, 0x82, n >> 8, n & 0xff]
  return Buffer.concat([Buffer.from(head), content])
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts))
}

function set(...parts: readonly Buffer[]): Buffer {
  return tagged(0x31, Buffer.concat(parts))
}

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const bytes = [first * 40 + second]
  for (const part of rest) {
    const digits = [part & 0x7f]
    for (let n = part >> 7; n > 0; n >>= 7) digits.unshift((n & 0x7f) | 0x80)
    bytes.push(...digits)
  }
  return tagged(0x06, Buffer.from(bytes))
}

function extension(id: string, value: Buffer, critical: boolean): Buffer {
  return sequence(oid(id), ...(critical ? [tagged(0x01, Buffer.from([0xff]))] : []), tagged(0x04, value))
}

// GeneralizedTime from 2050 on, UTCTime before (RFC 5280 §4.1.2.5).
function time(at_ms: number): Buffer {
  const text = `${new Date(at_ms).toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)}Z`
  return text < '2050' ? tagged(0x17, Buffer.from(text.slice(2))) : tagged(0x18, Buffer.from(text))
}

function addressBytes(address: string): Buffer {
  if (!isIPv6(address)) return Buffer.from(address.split('.').map(Number))
  const [left = '', right] = address.split('::')
  const groups = (text: string): number[] =>
    text === '' ? [] : text.split(':').map(group => Number.parseInt(group, 16))
  const head = groups(left)
  const tail = right === undefined ? [] : groups(right)
  const all = [...head, ...new Array(8 - head.length - tail.length).fill(0), ...tail]
  return Buffer.from(all.flatMap(group => [group >> 8, group & 0xff]))
}

function lines(base64: string): string {
  return base64.replaceAll(/.{64}(?=.)/g, '$&\n')
}
