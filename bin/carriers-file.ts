import { readFileSync } from 'node:fs'
import { input, list, oneOf, optional, type Static, Type } from '../control/http/schema.ts'
import { fieldErrors } from '../control/http/validate.ts'
import type { CarrierWish } from '../core/domain/carriers/plan.ts'
import { CODEC_NAMES } from '../core/domain/codecs/codec.ts'
import { parseNetwork } from '../core/domain/identity/address.ts'
import { readFingerprint } from '../core/domain/network/tls-verification.ts'
import { StartRefused } from '../core/runtime/lifecycle.ts'

const MAX_CARRIERS = 1000
const count = (least: number, most: number) => optional(Type.Integer({ minimum: least, maximum: most }))

const CarriersFile = input('CarriersFile', {
  carriers: Type.Array(
    input('CarrierInFile', {
      name: Type.String({ minLength: 1, maxLength: 120, pattern: '^[^\\u0000-\\u001f]+$' }),
      enabled: optional(Type.Boolean()),
      codecs: optional(list(oneOf(...CODEC_NAMES))),
      sources: list(Type.String({ maxLength: 60 })),
      targets: list(
        input('CarrierTargetInFile', {
          sip_uri: Type.String({ maxLength: 255, pattern: '^sips?:([^@\\s]+@)?[^\\s@]+$' }),
          transport: optional(oneOf('udp', 'tcp', 'tls')),
          priority: count(1, 65_535),
          weight: count(0, 65_535),
          tls_verification: optional(oneOf('required', 'pinned', 'off')),
          tls_fingerprint: optional(Type.String({ maxLength: 95 })),
        }),
      ),
      routes: list(
        input('CarrierRouteInFile', {
          prefix: Type.String({ maxLength: 16, pattern: '^(any|\\+?[0-9]{1,15})$' }),
          priority: count(0, 999_999),
          cost_minor: count(0, 999_999_999),
        }),
      ),
    }),
    { maxItems: MAX_CARRIERS },
  ),
})

/** Reads the carriers of a file and fills in defaults. Refuses the whole file with a list of all its faults. */
export function readCarriersFile(file: string): readonly CarrierWish[] {
  const value = parsed(file)
  const wrong = fieldErrors(CarriersFile, value).map(({ pointer, message }) => `${pointer || '/'} ${message}`)
  if (wrong.length > 0) throw refusal(file, wrong)
  const { carriers } = value as Static<typeof CarriersFile>
  const odd = carriers.flatMap(({ name, sources, targets }, at) => [
    ...(carriers.findIndex(other => other.name === name) < at ? [`/carriers/${at}/name is there twice`] : []),
    ...sources.flatMap((cidr, source) =>
      parseNetwork(cidr) ? [] : [`/carriers/${at}/sources/${source} is not an address or a CIDR`],
    ),
    ...targets.flatMap(({ tls_verification, tls_fingerprint }, target) =>
      (tls_verification === 'pinned') === (readFingerprint(tls_fingerprint ?? '') !== null)
        ? []
        : [`/carriers/${at}/targets/${target}/tls_fingerprint is to be a SHA-256 fingerprint where it is pinned`],
    ),
  ])
  if (odd.length > 0) throw refusal(file, odd)
  return carriers.map(({ name, enabled = true, codecs = ['PCMU', 'PCMA'], sources, targets, routes }) => ({
    name,
    enabled,
    codecs,
    sources,
    targets: targets.map(
      ({ sip_uri, transport = 'udp', priority, weight = 100, tls_verification = 'required', tls_fingerprint }, at) => ({
        sip_uri,
        transport,
        priority: priority ?? at + 1,
        weight,
        tls_verification,
        tls_fingerprint: tls_fingerprint === undefined ? null : readFingerprint(tls_fingerprint),
      }),
    ),
    routes: routes.map(({ prefix, priority = 10, cost_minor = 0 }) => ({
      prefix: prefix === 'any' ? '' : prefix.replace('+', ''),
      priority,
      cost_minor,
    })),
  }))
}

function parsed(file: string): unknown {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new StartRefused(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new StartRefused(`${file} is not JSON: ${(error as Error).message}`)
  }
}

const refusal = (file: string, wrong: readonly string[]): StartRefused =>
  new StartRefused(`${file} was not applied:\n${wrong.map(line => `  ${line}`).join('\n')}`)
