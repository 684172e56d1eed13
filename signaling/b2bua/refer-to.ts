import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'
import { dialled, headerOfUri, readAddress } from '../../core/domain/sip/address.ts'
import { splitList } from '../../core/domain/sip/uri.ts'

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
  /** The number in its context, or the decoded user part of a sip: URI that holds none. */
  readonly number: string
  readonly replaces: ReplacedDialog | null
  /** X- headers of the URI, for the new INVITE. */
  readonly headers: Readonly<Record<string, string>>
}

type ReferReading =
  | { readonly target: ReferTarget }
  /** 400: not exactly one valid Refer-To (RFC 3515 §2.4.2). 416: neither sip: nor tel:. 501: a method except INVITE. */
  | { readonly refused: 400 | 416 | 501 }
  /** A local number of a numbering plan that is not ours (RFC 3966 §5.1.5). */
  | { readonly refused: 484; readonly number: string; readonly context: string }

const SCHEMES = new Set(['sip', 'sips', 'tel'])

/**
 * Without brackets, all of the value is the URI. Its headers name the dialog to take over: a reader that left them to
 * Refer-To, as RFC 3261 §20.10 does with parameters of Contact, would call the target a second time.
 */
const bracketed = (value: string): string => (value.includes('<') ? value : `<${value.trim()}>`)

/** `country`: whose national formats are read. */
export function readReferTo(value: string | null, country: string = DEFAULT_COUNTRY): ReferReading {
  const address = readAddress(value === null ? null : bracketed(value))
  if (value === null || !address || splitList(value).length > 1) return { refused: 400 }
  if (!SCHEMES.has(address.scheme)) return { refused: 416 }
  const method = address.of_uri.get('method') ?? address.of_number.get('method') ?? 'INVITE'
  if (method.toUpperCase() !== 'INVITE') return { refused: 501 }
  const replacing = headerOfUri(address, 'replaces')
  const replaces = replacing === null ? null : readReplaces(replacing)
  if (replacing !== null && replaces === null) return { refused: 400 }
  const called = dialled(address, country)
  if (called.number === null) {
    if (!replaces) return { refused: 484, number: address.user, context: called.context }
  } else if (called.number === '' && replaces === null) return { refused: 400 }
  const number = called.number ?? address.user
  const passed = address.headers.filter(([name]) => /^x-[a-z0-9-]{1,60}$/i.test(name) && !/^x-strowger/i.test(name))
  return { target: { raw: value, number, replaces, headers: Object.fromEntries(passed) } }
}
