// One word names one thing: no two files export the same name.
import type { Source } from './rules.ts'

const ROOMS = /^(bin|control|core|markup|media|native|signaling)\//
/**
 * Places whose names are their own: programs of the browser, migrations (each exports `up`), and the meanings of
 * properties, which are kept by room.
 */
const OWN_WORLDS = /^(control\/(console|openapi\/meanings)|core\/state\/migrations)\//
const EXPORT =
  /^export (?:async )?(?:abstract )?(?:const|let|function\*?|class|interface|type|enum) ([A-Za-z_$][\w$]*)/gm

const names = (text: string): string[] => text.trim().split(/\s+/)

/** Names that several files export, by the reason. A name may only leave the list. */
const SHARED = new Set([
  // A schema and the type of its values, or a value on both sides of a border that types may not cross.
  ...names(`
    AlertPolicy CallingWindow CodecName Direction Flag Instant Redirects Role ServiceType SrtpKeys TlsVerification
    Transport
  `),
  // The routes of one resource in several APIs, and `route`, which builds them.
  ...names('audit calls conferences exports invitations members numbers projects queues recordings route'),
  // The handlers of each form of a Dial, of which one is chosen.
  ...names('begin cut gone on'),
])

export function nameFindings(all: readonly Source[], shared: ReadonlySet<string> = SHARED): string[] {
  const files = new Map<string, Set<string>>()
  for (const { path, text } of all)
    if (ROOMS.test(path) && !OWN_WORLDS.test(path))
      for (const [, name = ''] of text.matchAll(EXPORT)) files.set(name, (files.get(name) ?? new Set()).add(path))
  const several = [...files].filter(([, paths]) => paths.size > 1)
  return [
    ...several
      .filter(([name]) => !shared.has(name))
      .map(
        ([name, paths]) => `${[...paths].sort().join(' and ')} export the name ${name}: give one thing another name`,
      ),
    ...[...shared]
      .filter(name => (files.get(name)?.size ?? 0) < 2)
      .map(name => `test/tidy/names.ts: one file exports ${name} now: take it from the list`),
  ]
}
