import { isIP } from 'node:net'
import { smsRoute } from '../domain/alerts/notices.ts'
import { parseNetwork } from '../domain/identity/address.ts'
import { type Roles, rolesOf } from '../domain/machines/roles.ts'
import { PORTS_REFUSED_BY_BROWSERS } from '../domain/network/browser-ports.ts'
import { hostsOf } from './database-url.ts'

// Parsers for the values of environment variables. Each takes the text and the variable's name and throws ConfigError
// for an invalid text.

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/** A variable has an invalid value. The message names the variable, the value and the expected form. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

export interface SiprecConnector {
  readonly name: string
  readonly uri: string
}

export const refuseValue = (name: string, value: string, expected: string): never => {
  throw new ConfigError(`${name}=${value}: ${expected}`)
}

export const anyText = (value: string): string => value
export const textOrUnset = (value: string): string | null => (value === '' ? null : value)

export const port = (value: string, name: string): number => {
  const number = Number(value)
  if (!/^\d{1,5}$/.test(value) || number < 1 || number > 65535)
    refuseValue(name, value, 'a port is a number from 1 to 65535')
  return number
}

export const httpPort = (value: string, name: string): number => {
  const number = port(value, name)
  if (PORTS_REFUSED_BY_BROWSERS.has(number))
    refuseValue(name, value, 'browsers refuse this port; choose another, such as 8080')
  return number
}

export const optionalPort = (value: string, name: string): number | null =>
  value === '' ? null : httpPort(value, name)

export const portRange = (value: string, name: string): { first: number; last: number } => {
  const match = /^(\d{1,5})-(\d{1,5})$/.exec(value)
  const first = Number(match?.[1])
  const last = Number(match?.[2])
  if (!match || first < 1024 || last > 65535 || last - first < 3 || first % 2 !== 0)
    refuseValue(name, value, 'a range is FIRST-LAST within 1024-65535, FIRST even, with at least two port pairs')
  return { first, last }
}

/** Parses one address, or one of each family. An empty text is an empty list. */
export const addresses = (value: string, name: string): readonly string[] => {
  if (value === '') return []
  const found = wordList(value)
  const families = found.map(isIP)
  if (found.length === 0 || families.includes(0) || new Set(families).size < families.length)
    refuseValue(name, value, 'an IPv4 or IPv6 address is expected, or one of each')
  return found
}

/** Parses a key of 32 bytes; null for an empty text. */
export const masterKey = (value: string, name: string): Buffer | null => {
  if (value === '') return null
  const key = /^[0-9a-f]{64}$/i.test(value) ? Buffer.from(value, 'hex') : Buffer.from(value, 'base64')
  if (key.length !== 32) throw new ConfigError(`${name}: expected 32 bytes as hex or base64`)
  return key
}

export const onOrOff = (value: string, name: string): boolean => {
  if (/^(on|true|yes|1)$/i.test(value)) return true
  if (/^(off|false|no|0)$/i.test(value)) return false
  return refuseValue(name, value, 'expected on or off')
}

/** On or off; null when it is not said. */
export const onOrOffOrUnset = (value: string, name: string): boolean | null =>
  value === '' ? null : onOrOff(value, name)

export const endpoint = (value: string, name: string): { host: string; port: number } | null => {
  if (value === '') return null
  const match = /^(?:\[([0-9a-f:]+)\]|([^:\s]+)):(\d{1,5})$/i.exec(value)
  if (!match) return refuseValue(name, value, 'expected HOST:PORT')
  return { host: match[1] ?? match[2] ?? '', port: port(match[3] ?? '', name) }
}

export const LEVELS: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']
export const level = (value: string, name: string): LogLevel =>
  LEVELS.find(known => known === value) ?? refuseValue(name, value, `expected one of ${LEVELS.join(', ')}`)

export const domain = (value: string, name: string): string => {
  if (!/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i.test(value)) refuseValue(name, value, 'expected a DNS name')
  return value.toLowerCase()
}

/** Returns a parser for whole numbers from `least` to `most`. */
export const whole =
  (least: number, most: number, unit = '') =>
  (value: string, name: string): number => {
    const number = Number(value)
    if (!/^\d{1,10}$/.test(value) || number < least || number > most)
      refuseValue(name, value, `expected ${least} to ${most}${unit}`)
    return number
  }

/** Parses the first id of a range of users. It excludes the last 16-bit ids, which the kernel and `nobody` use. */
export const userIds = (value: string, name: string): number | null =>
  /^(off|false|no|0)$/i.test(value) ? null : whole(1, 65_500)(value, name)

export const gigabytes = (value: string, name: string): number | null => {
  if (!/^\d{1,6}$/.test(value)) refuseValue(name, value, 'expected whole gigabytes, 0 for no limit')
  return Number(value) === 0 ? null : Number(value) * 1_000_000_000
}

const isUrl = (value: string, scheme: RegExp): boolean => URL.canParse(value) && scheme.test(new URL(value).protocol)

export const httpUrl = (value: string, name: string): string | null => {
  if (value === '') return null
  if (!isUrl(value, /^https?:$/)) refuseValue(name, value, 'expected an http(s) URL')
  return value.replace(/\/+$/, '')
}

export const databaseUrl = (value: string, name: string): string | null => {
  if (value === '') return null
  if (hostsOf(value) === null) refuseValue(name, '…', 'expected postgres://user:password@host:port/database')
  return value
}

export const redisUrl = (value: string, name: string): string | null => {
  if (value === '') return null
  const { hostname, pathname, username, password } = isUrl(value, /^rediss?:$/) ? new URL(value) : NO_URL
  if (hostname === '' || !/^\/?\d*$/.test(pathname) || !isEncoded(`${username}${password}`))
    refuseValue(name, '…', 'expected redis://user:password@host:port, or rediss:// for TLS')
  return value
}

const NO_URL = { hostname: '', pathname: '', username: '', password: '' }

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

export const recognizerUrl = (value: string, name: string): string | null => {
  if (value === '') return null
  if (!isUrl(value, /^(https?|wss?):$/)) refuseValue(name, value, 'expected a ws(s) or http(s) URL')
  return value
}

/** One of the words; an empty text is null. */
export const word =
  <const W extends string>(...words: readonly W[]) =>
  (value: string, name: string): W | null =>
    value === ''
      ? null
      : (words.find(known => known === value) ?? refuseValue(name, value, `expected one of ${words.join(', ')}`))

export const connectors = (value: string, name: string): SiprecConnector[] =>
  wordList(value).map(item => {
    const match = /^([A-Za-z0-9_-]{1,64})=(sips?:[^\s<>]{1,255})$/.exec(item)
    return match ? { name: match[1] ?? '', uri: match[2] ?? '' } : refuseValue(name, item, 'expected NAME=SIP-URI, …')
  })

export const smtpUrl = (value: string, name: string): string | null => {
  if (value === '') return null
  if (!isUrl(value, /^smtps?:$/) || new URL(value).hostname === '')
    // The value may contain a password, so the message omits it.
    refuseValue(name, '…', 'expected smtp://user:password@host:port or smtps://…')
  return value
}

export const smsUrl = (value: string, name: string): string | null => {
  if (value === '') return null
  if (smsRoute(value) === null) refuseValue(name, value, 'expected an http(s) URL, sip:HOST:PORT or voice:')
  return value.replace(/\/+$/, '')
}

export const mailbox = (value: string, name: string): string => {
  if (!/^[^@\s<>]{1,64}@[A-Za-z0-9.-]{1,189}$/.test(value)) refuseValue(name, value, 'an e-mail address is expected')
  return value
}

export const mailboxOrUnset = (value: string, name: string): string | null =>
  value === '' ? null : mailbox(value, name)

/** What a machine does of an installation. */
export function machineRoles(value: string, name: string): Roles {
  const roles = rolesOf(wordList(value))
  return typeof roles === 'string' ? refuseValue(name, value, roles) : roles
}

export const wordList = (value: string): string[] => value.split(/[\s,]+/).filter(item => item !== '')

/** Parses a list of DNS names. */
export const dnsNames = (value: string, name: string): string[] => [
  ...new Set(wordList(value).map(item => domain(item, name))),
]

export const acmeUrl = (value: string, name: string): string =>
  isUrl(value, /^https:$/) ? value : refuseValue(name, value, 'expected an https URL')

/** Parses CIDRs, addresses, `loopback` or `none`; null for an empty text. */
export const ranges = (value: string, name: string): string[] | null => {
  const found = wordList(value)
  const strange = found.find(item => item !== 'loopback' && item !== 'none' && !parseNetwork(item))
  if (strange !== undefined) refuseValue(name, strange, 'expected CIDRs, `loopback`, or `none`')
  return found.length === 0 ? null : found
}
