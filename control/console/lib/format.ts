import { computed } from '@preact/signals'
import { grouped } from '../../../core/domain/text/counted.ts'
import { session } from './session.ts'

/** Makes a format at its first use: each takes milliseconds, and most pages use few of them. */
function onceNeeded<T>(make: () => T): () => T {
  let made: T | undefined
  return () => {
    made ??= make()
    return made
  }
}

export const count = (value: number | null | undefined): string => (value == null ? '–' : grouped(value))

const currencies = new Map<string, Intl.NumberFormat>()

/** A format is dear to make and cheap to use. */
function formatOf(currency: string): Intl.NumberFormat {
  const known = currencies.get(currency)
  if (known) return known
  const made = new Intl.NumberFormat('en-NG', { style: 'currency', currency, currencyDisplay: 'narrowSymbol' })
  currencies.set(currency, made)
  return made
}

/** Formats minor units as the currency is written: 12345 NGN → ₦123.45. */
export const money = (minor: number | null | undefined, currency = 'NGN'): string =>
  minor == null ? '–' : formatOf(currency).format(minor / 100)

export function duration(seconds: number | null | undefined): string {
  if (seconds == null) return '–'
  const whole = Math.max(0, Math.round(seconds))
  const hours = Math.floor(whole / 3600)
  const minutes = Math.floor((whole % 3600) / 60)
  const rest = String(whole % 60).padStart(2, '0')
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${rest}` : `${minutes}:${rest}`
}

const relative = onceNeeded(() => new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' }))
const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
]

export function ago(at: string | null | undefined, now_ms = Date.now()): string {
  if (at == null) return '–'
  const seconds = (Date.parse(at) - now_ms) / 1000
  if (Math.abs(seconds) < 5) return 'now'
  if (Math.abs(seconds) > 30 * 86_400) return day.value.format(new Date(at))
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1]
  return relative().format(Math.trunc(seconds / size), unit)
}

/** The time zone of every shown time: the organization's, as on its bills. */
export const timeZone = computed(() => session.value?.organization.time_zone)

const inZone = (options: Intl.DateTimeFormatOptions) =>
  computed(() => new Intl.DateTimeFormat('en-GB', { ...options, timeZone: timeZone.value, hourCycle: 'h23' }))

const calendar = (options: Intl.DateTimeFormatOptions) =>
  onceNeeded(() => new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' }))
const calendarDay = calendar({ day: 'numeric', month: 'short', year: 'numeric' })
const calendarMonth = calendar({ month: 'long', year: 'numeric' })
const day = inZone({ day: '2-digit', month: 'short', year: 'numeric' })
const instant = inZone({ dateStyle: 'medium', timeStyle: 'medium' })
const offset = inZone({ timeZoneName: 'longOffset' })
const local = inZone({ year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' })
const clock = inZone({ hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 })

/**
 * The instant of a form's local date and time, `2026-11-25T18:00`, in the organization's time zone. The offset is read
 * twice: at the first guess and at the result, which differ around a change of the clocks.
 */
export function instantOf(local: string): string {
  const as_utc = Date.parse(`${local}Z`)
  const offsetAt = (ms: number): number => {
    const parts = offset.value.formatToParts(new Date(ms)).find(({ type }) => type === 'timeZoneName')?.value ?? ''
    const [, sign, hours = '0', minutes = '0'] = /^GMT([+-])(\d\d):(\d\d)$/.exec(parts) ?? []
    return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000
  }
  return new Date(as_utc - offsetAt(as_utc - offsetAt(as_utc))).toISOString()
}

/** The date and time of a form's field, in the organization's time zone: what `instantOf` reads. */
export function localOf(at_ms: number): string {
  const parts = new Map(local.value.formatToParts(new Date(at_ms)).map(({ type, value }) => [type, value]))
  const [year, month, day, hour, minute] = ['year', 'month', 'day', 'hour', 'minute'].map(name =>
    parts.get(name as 'day'),
  )
  return `${year}-${month}-${day}T${hour}:${minute}`
}

const QUARTER_MS = 900_000
const offsets = computed(() => ({ zone: timeZone.value, by_quarter: new Map<number, number>() }))

/**
 * Returns a date whose local fields are those of the organization's time zone, for charts: they ask for many. Offsets
 * of zones change at quarters of an hour.
 */
export function zonedDate(at_ms: number): Date {
  const { by_quarter } = offsets.value
  const quarter = Math.floor(at_ms / QUARTER_MS)
  let offset_ms = by_quarter.get(quarter)
  if (offset_ms === undefined) {
    offset_ms = Date.parse(`${localOf(quarter * QUARTER_MS)}Z`) - quarter * QUARTER_MS
    by_quarter.set(quarter, offset_ms)
  }
  const shown = new Date(at_ms + offset_ms)
  const time = [shown.getUTCHours(), shown.getUTCMinutes(), shown.getUTCSeconds(), shown.getUTCMilliseconds()] as const
  return new Date(shown.getUTCFullYear(), shown.getUTCMonth(), shown.getUTCDate(), ...time)
}

export const when = (at: string | null | undefined): string => (at == null ? '–' : instant.value.format(new Date(at)))
/** A day of a bill, `2026-11-26`, as times are written. */
export const dayText = (day: string): string => calendarDay().format(new Date(day))
/** A month of a bill, `2026-11`. */
export const monthText = (month: string): string => calendarMonth().format(new Date(`${month}-01`))
export const clockTime = (at: string): string => clock.value.format(new Date(at))

export const percent = (share: number | null, digits = 1): string =>
  share === null || Number.isNaN(share) ? '–' : `${(share * 100).toFixed(digits)} %`

const MIB = 1024 * 1024
const GIB = 1024 * MIB

export function bytes(size: number | null): string {
  if (size === null) return '–'
  if (size < MIB) return `${Math.ceil(size / 1024)} KiB`
  return size < GIB ? `${(size / MIB).toFixed(1)} MiB` : `${(size / GIB).toFixed(1)} GiB`
}

/** Names of protocols and the like, which are written in capitals. */
const CAPITALS = new Set(
  'acd api asr cdr cli cps csv dns dtls dtmf http https id ip mos nat pbx pdd rtcp rtp sdes sdp sid sip sms srtp tcp tls udp url'.split(
    ' ',
  ),
)

/** `in-progress` → `In progress`; `sdes_srtp_required` → `SDES SRTP required`. */
export const words = (name: string): string => {
  const text = name
    .split(/[ _-]/)
    .map(word => (CAPITALS.has(word) ? word.toUpperCase() : word))
    .join(' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}
