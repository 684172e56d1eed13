/**
 * Effect of a fault. `default`: a warning, and the default value. `child`: the Dial's child fails. `document`: stops.
 */
export type Effect = 'default' | 'child' | 'document'

/** The type of an attribute: how to read its text, its default, and the number of a bad value. */
export interface AttributeType<T> {
  /** Returns the value of a trimmed text, or undefined for a bad value. */
  read(text: string): T | undefined
  readonly fallback: T
  readonly number: number
  readonly effect: Effect
  /** Describes the allowed values, for documentation and messages. */
  readonly values: string
  /** True when the attribute is accepted for compatibility but has no effect here. */
  readonly ignored: boolean
  /** With `ignored`: a document that sets it expects to hear a difference, so the call gets a warning. */
  readonly warns?: true
  /** An empty text is as if the attribute were not given: templates leave the attributes empty that they do not use. */
  readonly empty_is_absent?: true
  /** Returns a warning about a text that is nevertheless used. */
  doubt?(text: string): string | undefined
}

export type AttributeTypes = Readonly<Record<string, AttributeType<unknown>>>
export type Values<A extends AttributeTypes> = {
  readonly [K in keyof A]: A[K] extends AttributeType<infer T> ? T : never
}

/** The number of faults without a more specific number: the document does not fit the schema. */
export const SCHEMA = 12200

interface Options<T> {
  readonly default: T
  readonly number?: number
  readonly effect?: Effect
}

function attribute<T>(values: string, options: Options<T>, read: (text: string) => T | undefined): AttributeType<T> {
  return {
    read,
    values,
    fallback: options.default,
    number: options.number ?? SCHEMA,
    effect: options.effect ?? 'default',
    ignored: false,
  }
}

const emptyIsAbsent = <T>(type: AttributeType<T>): AttributeType<T> => ({ ...type, empty_is_absent: true })

/** A decimal integer. A value outside min..max is bad, or with `clamp` becomes the nearer limit. */
export function integer<T extends number | null>(
  options: Options<T> & { min?: number; max?: number; clamp?: boolean },
): AttributeType<T | number> {
  const { min = 0, max = Number.MAX_SAFE_INTEGER, clamp = false } = options
  const range = max === Number.MAX_SAFE_INTEGER ? `integer from ${min}` : `integer ${min} to ${max}`
  return attribute<T | number>(clamp ? `${range}, clamped` : range, options, text => {
    if (!/^[+-]?\d{1,15}$/.test(text)) return undefined
    const value = Number(text)
    if (clamp) return Math.min(max, Math.max(min, value))
    return value >= min && value <= max ? value : undefined
  })
}

/** `true` or `false`, case-insensitively; also 1 or 0. */
export function flag(fallback: boolean, number?: number, effect?: Effect): AttributeType<boolean> {
  const options = { default: fallback, ...(number ? { number } : {}), ...(effect ? { effect } : {}) }
  return attribute('true, false', options, text => {
    const word = text.toLowerCase()
    if (word === 'true' || word === '1') return true
    return word === 'false' || word === '0' ? false : undefined
  })
}

export function choice<const V extends string, const T extends V | null>(
  values: readonly V[],
  options: Options<T> & { aliases?: Readonly<Record<string, V>>; caseless?: boolean },
): AttributeType<V | T> {
  return attribute<V | T>(values.join(', '), options, text => {
    const word = options.caseless ? text.toLowerCase() : text
    return values.find(v => (options.caseless ? v.toLowerCase() : v) === word) ?? options.aliases?.[word]
  })
}

export function method(number?: number, effect?: Effect): AttributeType<'GET' | 'POST'> {
  return choice(['GET', 'POST'], {
    default: 'POST',
    caseless: true,
    ...(number ? { number } : {}),
    ...(effect ? { effect } : {}),
  })
}

/** Event names separated by spaces or commas. Unknown names are dropped with a warning. */
export function events(known: readonly string[], fallback: readonly string[], number: number) {
  const split = (text: string) => text.split(/[\s,]+/).filter(Boolean)
  const list = attribute(`list of ${known.join(', ')}`, { default: fallback, number }, text =>
    split(text).filter(word => known.includes(word)),
  )
  return {
    ...emptyIsAbsent(list),
    doubt: (text: string) => {
      const unknown = split(text).find(word => !known.includes(word))
      return unknown === undefined ? undefined : `unknown event "${unknown}"`
    },
  }
}

/** Text of up to `max` characters; defaults to null. */
export function text(options: { max?: number; number?: number; effect?: Effect } = {}): AttributeType<string | null> {
  const { max = 4096 } = options
  const about = { ...options, default: null }
  return emptyIsAbsent(
    attribute<string | null>(`text up to ${max} characters`, about, value => (value.length <= max ? value : undefined)),
  )
}

/** Text that matches a pattern. */
export function pattern<T extends string | null>(
  shape: RegExp,
  values: string,
  options: Options<T>,
): AttributeType<string | T> {
  return attribute<string | T>(values, options, value => (shape.test(value) ? value : undefined))
}

/** A URL as written, absolute http(s) or relative; defaults to null. The verb resolves it on use. */
export function url(number?: number, effect?: Effect): AttributeType<string | null> {
  const options = { default: null, ...(number ? { number } : {}), ...(effect ? { effect } : {}) }
  return emptyIsAbsent(attribute<string | null>('URL', options, value => (isUrl(value) ? value : undefined)))
}

/** A ws(s) URL as written; defaults to null. */
export function socketUrl(number: number): AttributeType<string | null> {
  return emptyIsAbsent(
    attribute<string | null>('wss:// or ws:// URL', { default: null, number }, value =>
      isSocketUrl(value) ? value : undefined,
    ),
  )
}

/** A BCP 47 tag of a language. */
export function languageTag<T extends string | null>(options: Options<T>): AttributeType<string | T> {
  return pattern(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$/, 'BCP 47', options)
}

/** Words that the caller is likely to say, separated by commas. */
export function hints(number?: number): AttributeType<readonly string[]> {
  const options = { default: [], ...(number ? { number } : {}) }
  return attribute<readonly string[]>('up to 500 of up to 100 characters', options, value => {
    const words = value
      .split(',')
      .map(hint => hint.trim())
      .filter(Boolean)
    return words.length <= 500 && words.every(hint => hint.length <= 100) ? words : undefined
  })
}

/** A number of repetitions, at most 1000. 0 means "until hang-up" and reads as 1000 (voice-compat.md §10). */
export function loop(number: number): AttributeType<number> {
  return attribute('integer from 0; 0 until hang-up', { default: 1, number }, value => {
    if (!/^\d{1,9}$/.test(value)) return undefined
    return value === '0' || Number(value) > 1000 ? 1000 : Number(value)
  })
}

/** A value that `read` parses, for example a number or `auto`. */
export function custom<T>(values: string, options: Options<T>, read: (value: string) => T | undefined) {
  return attribute(values, options, read)
}

/** An attribute that is accepted and has no effect. */
export function ignored(values = 'any'): AttributeType<string | null> {
  return { ...emptyIsAbsent(attribute<string | null>(values, { default: null }, value => value)), ignored: true }
}

/** An attribute that is read and has no effect, although its documents expect one: it leaves a warning. */
export const inert = <T>(type: AttributeType<T>): AttributeType<T> => ({ ...type, ignored: true, warns: true })

/** Reports whether text can be an http(s) URL, either absolute or relative to a base. */
function isUrl(value: string): boolean {
  try {
    const { protocol } = new URL(value, 'http://base.invalid/')
    return protocol === 'http:' || protocol === 'https:'
  } catch {
    return false
  }
}

function isSocketUrl(value: string): boolean {
  try {
    const { protocol, hostname } = new URL(value)
    return (protocol === 'wss:' || protocol === 'ws:') && hostname !== ''
  } catch {
    return false
  }
}
