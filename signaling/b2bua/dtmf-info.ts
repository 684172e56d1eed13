import type { SipRequest } from '../drachtio/types.ts'

/** Reads the key of an INFO: `application/dtmf-relay` (Signal=5) or `application/dtmf` (5). Null when it has none. */
export function keyOfInfo(request: SipRequest): string | null {
  const type = (request.header('content-type') ?? request.header('c') ?? '').split(';')[0]?.trim().toLowerCase()
  const body = request.body.slice(0, 256)
  if (type === 'application/dtmf-relay') return key(/^\s*Signal\s*=\s*(\S{1,2})\s*$/im.exec(body)?.[1])
  if (type === 'application/dtmf') return key(body.trim())
  return null
}

const NAMED: Readonly<Record<string, string>> = { '10': '*', '11': '#', '12': 'A', '13': 'B', '14': 'C', '15': 'D' }

const key = (text: string | undefined): string | null => {
  const named = NAMED[text ?? ''] ?? text?.toUpperCase() ?? ''
  return /^[0-9A-D*#]$/.test(named) ? named : null
}
