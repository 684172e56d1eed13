import { parseNumber } from '../../core/domain/numbers/parse.ts'

/**
 * Parses what a REFER asks for (RFC 3515 §2.1): a number to call, or a dialog to take over (RFC 3891). Admission
 * decides whether the transferor may have it.
 */

export interface ReplacedDialog {
  readonly call_id: string
  /** The local tag of the header's recipient: the tag that we assigned. */
  readonly to_tag: string
  readonly from_tag: string
  /** The dialog may be replaced only until it is answered. */
  readonly early_only: boolean
}

/** Parses a Replaces header (RFC 3891 §6.1); null unless it is one, with a Call-ID and both tags. */
export function readReplaces(value: string): ReplacedDialog | null {
  const [call_id = '', ...parameters] = value.split(';').map(part => part.trim())
  const tag = (name: string): string =>
    parameters.find(part => part.toLowerCase().startsWith(`${name}=`))?.slice(name.length + 1) ?? ''
  const [to_tag, from_tag] = [tag('to-tag'), tag('from-tag')]
  if (call_id === '' || to_tag === '' || from_tag === '' || value.includes(',')) return null
  return { call_id, to_tag, from_tag, early_only: parameters.some(part => part.toLowerCase() === 'early-only') }
}

export interface DialogTags {
  readonly call_id: string
  readonly local_tag: string
  readonly remote_tag: string
}

/** Exactly the dialog that a Replaces header names to us (RFC 3891 §3). */
export const isNamed =
  ({ call_id, to_tag, from_tag }: ReplacedDialog) =>
  (dialog: DialogTags): boolean =>
    dialog.call_id === call_id && dialog.local_tag === to_tag && dialog.remote_tag === from_tag

export interface ReferTarget {
  /** The header's value as received, byte for byte, for reports. */
  readonly raw: string
  /** The decoded user part of a sip: URI, or the number of a tel: URI without visual separators. */
  readonly number: string
  readonly replaces: ReplacedDialog | null
  /** X- headers of the URI, for the new INVITE. */
  readonly headers: Readonly<Record<string, string>>
}

type ReferReading =
  | { readonly target: ReferTarget }
  /** 400: not exactly one valid Refer-To (RFC 3515 §2.4.2). 416: neither sip: nor tel:. 501: a method except INVITE. */
  | { readonly refused: 400 | 416 | 501 }

const MAX_LENGTH = 2048
const MAX_HEADERS = 16

export function readReferTo(value: string | null): ReferReading {
  if (value === null || value.length > MAX_LENGTH) return { refused: 400 }
  const uri = uriOf(value.trim())
  if (uri === null) return { refused: 400 }
  const [, scheme = '', rest = ''] = /^([A-Za-z][A-Za-z0-9+.-]*):(.*)$/.exec(uri) ?? []
  if (scheme === '') return { refused: 400 }
  if (!/^(sips?|tel)$/i.test(scheme)) return { refused: 416 }
  const at = rest.indexOf('?')
  const address = at < 0 ? rest : rest.slice(0, at)
  const headers = at < 0 ? [] : readHeaders(rest.slice(at + 1))
  const method = /;\s*method=([^;]+)/i.exec(address)?.[1]?.trim() ?? 'INVITE'
  if (method.toUpperCase() !== 'INVITE') return { refused: 501 }
  const replacing = headers.find(([name]) => name.toLowerCase() === 'replaces')
  const replaces = replacing === undefined ? null : readReplaces(replacing[1])
  if (replacing !== undefined && replaces === null) return { refused: 400 }
  const number = /^tel$/i.test(scheme) ? telNumber(address) : sipUser(address)
  if (number === '' && replaces === null) return { refused: 400 }
  const passed = headers.filter(([name]) => /^x-[a-z0-9-]{1,60}$/i.test(name) && !/^x-strowger/i.test(name))
  return { target: { raw: value, number, replaces, headers: Object.fromEntries(passed) } }
}

/** Returns the URI of a value that is exactly one address, in brackets or bare; otherwise null. */
function uriOf(value: string): string | null {
  const bracketed = /^(?:"(?:[^"\\]|\\.)*"\s*|[^<>",]*)<([^<>\s]*)>\s*(?:;[^<>,]*)?$/.exec(value)
  if (bracketed) return bracketed[1] ?? null
  // A bare address ends at the first semicolon. One with a question mark or comma needs brackets (RFC 3261 §20.10).
  return /^[^<>"\s,?]+$/.test(value) ? (value.split(';')[0] ?? null) : null
}

function readHeaders(text: string): [string, string][] {
  return text
    .split('&')
    .slice(0, MAX_HEADERS)
    .flatMap(pair => {
      const at = pair.indexOf('=')
      const [name, value] = at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
      return name === '' ? [] : [[decoded(name), decoded(value)] as [string, string]]
    })
}

const sipUser = (address: string): string => {
  const at = address.lastIndexOf('@')
  const user = at < 0 ? '' : (address.slice(0, at).split(';')[0]?.split(':')[0] ?? '')
  return decoded(user)
}

/** Reads a tel: number. A local number is prefixed with its phone-context when that is a prefix (RFC 3966 §5.1.5). */
function telNumber(address: string): string {
  const [given = '', ...parameters] = address.split(';')
  const number = decoded(given).replace(/[-.()]/g, '')
  const context = parameters.map(part => /^phone-context=(\+[\d.()-]+)$/i.exec(part)?.[1]).find(Boolean)
  if (number.startsWith('+') || context === undefined) return number
  const prefix = context.replace(/[-.()]/g, '')
  const full = `${prefix}${number}`
  // Telephones write the number as dialled nationally: its leading 0 is not part of the international number.
  return number.startsWith('0') && !parseNumber(full, '') ? `${prefix}${number.slice(1)}` : full
}

function decoded(text: string): string {
  let plain = text
  try {
    plain = decodeURIComponent(text)
  } catch {
    // Text with malformed escapes is kept unchanged.
  }
  return plain.replace(/[\r\n\0]/g, '')
}
