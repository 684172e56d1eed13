import type { BodyReading } from '../../core/domain/sip/body.ts'
import type { SipRequest } from '../drachtio/types.ts'

const KEYS: ReadonlySet<string> = new Set(['application/dtmf-relay', 'application/dtmf'])

/**
 * Reads the key of an INFO: `application/dtmf-relay` (Signal=5) or `application/dtmf` (5). The digit is null when it
 * has none. `refused`: the body is none of these, and not optional.
 */
export function keyOfInfo(request: SipRequest): { readonly digit: string | null } & Pick<BodyReading, 'refused'> {
  const { parts, refused } = request.content(KEYS)
  const found = parts.find(({ type }) => KEYS.has(type))
  const headers = { Accept: [...KEYS].join(', ') }
  if (!found) return { digit: null, refused: refused && { ...refused, headers } }
  const text = found.content.slice(0, 256)
  const relayed = found.type === 'application/dtmf-relay'
  const digit = key(relayed ? /^\s*Signal\s*=\s*(\S{1,2})\s*$/im.exec(text)?.[1] : text.trim())
  return { digit, refused: digit === null ? { value: `${found.type} without a key`, headers } : null }
}

const NAMED: Readonly<Record<string, string>> = { '10': '*', '11': '#', '12': 'A', '13': 'B', '14': 'C', '15': 'D' }

const key = (text: string | undefined): string | null => {
  const named = NAMED[text ?? ''] ?? text?.toUpperCase() ?? ''
  return /^[0-9A-D*#]$/.test(named) ? named : null
}
