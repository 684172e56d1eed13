// State belongs to an object that somebody makes, passes on and ends. What a module keeps for itself has a reason here.
import type { Source } from './rules.ts'

const ROOMS = /^(bin|control|core|markup|media|native|signaling)\//
/** Programs of the browser: one page is one user's. */
const OWN_WORLDS = /^control\/console\//

const VARIABLE = /^(?:export )?let (\w+)/gm
const COLLECTION =
  /^(?:export )?const (\w+)(?:: [^=\n]+)? = (?:new (?:Weak)?(?:Map|Set|LRUCache)\b|bounded(?:Map|Bytes)\b)/gm

const MEMO = 'the results of a pure function'
const LOADED = 'a library or program that a process loads once'
const RANDOM = 'random bytes that are drawn in bulk'
const STARTED = 'a choice that a process makes once, at its start'

/** What a module may keep, by path and name. An entry may only leave the list. */
const KEPT: Readonly<Record<string, string>> = {
  'bin/data-option.ts folder': STARTED,
  'control/http/instants.ts known': MEMO,
  'control/http/validate.ts compiled': MEMO,
  'control/mp3/thread.ts encoders': 'the thread is their owner',
  'control/openapi/viewer.ts loaded': LOADED,
  'core/domain/numbers/countries.ts compiled': MEMO,
  'core/domain/numbers/parse.ts parsed': MEMO,
  'core/domain/policies/calling-hours.ts formatters': MEMO,
  'core/domain/rating/amounts.ts made': MEMO,
  'core/domain/rating/day.ts formatters': MEMO,
  'core/domain/rating/day.ts latest': MEMO,
  'core/domain/text/counted.ts format': MEMO,
  'core/runtime/bare-child.ts runner': STARTED,
  'core/runtime/clock.ts last_iso': MEMO,
  'core/runtime/clock.ts last_ms': MEMO,
  'core/runtime/doors.ts code': STARTED,
  'core/runtime/http/connect.ts beforeRequest': 'a part of each client of undici, which has no place for it',
  'core/runtime/ids.ts pool': RANDOM,
  'core/runtime/ids.ts taken': RANDOM,
  'core/runtime/typescript-stacks.ts maps': LOADED,
  'core/state/postgres/known-reads.ts tables_of_texts': MEMO,
  'core/state/postgres/values.ts numbered_texts': MEMO,
  'markup/interpreter/document.ts READ': MEMO,
  'media/files/pcm.ts ulawCodes': MEMO,
  'media/files/pcm.ts ulawLevels': MEMO,
  'media/server.ts validators': MEMO,
  'media/speech/pocketsphinx-input.ts known': LOADED,
  'media/webrtc/werift.ts loading': LOADED,
  'native/addon.ts addon': LOADED,
  'signaling/edge/control/wire.ts last_second': MEMO,
  'signaling/edge/control/wire.ts last_text': MEMO,
  'signaling/edge/sip/headers.ts byName': 'a table that the module fills when it is loaded',
  'signaling/edge/sip/ids.ts pool': RANDOM,
  'signaling/edge/sip/ids.ts used': RANDOM,
  'signaling/edge/transport/connection.ts serial': 'the next id: it tells connections apart and nothing else',
}

export function moduleStateFindings(sources: readonly Source[], kept = KEPT): string[] {
  const places = new Set(
    sources
      .filter(({ path }) => ROOMS.test(path) && !OWN_WORLDS.test(path))
      .flatMap(({ path, text }) => stateOf(text).map(name => `${path} ${name}`)),
  )
  return [
    ...[...places]
      .filter(place => kept[place] === undefined)
      .map(place => `${place}: a module keeps it; make it the property of an object that has an owner`),
    ...Object.keys(kept)
      .filter(place => !places.has(place))
      .map(place => `test/tidy/module-state.ts: ${place} is gone: take it from the list`),
  ]
}

/** Returns the names of a module's variables, and of its collections to which something is added. */
const stateOf = (text: string): string[] => [
  ...[...text.matchAll(VARIABLE)].map(([, name = '']) => name),
  ...[...text.matchAll(COLLECTION)]
    .map(([, name = '']) => name)
    .filter(name => new RegExp(`\\b${name}\\.(?:set|add)\\(`).test(text)),
]
