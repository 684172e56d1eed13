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

/** Names that several files still export. A name may only leave the list. */
const SHARED = new Set(
  `
  AlertPolicy Call CallingWindow Channel Codec CodecName Connection Direction Engine Entry Environment Evidence
  Failure Finding Flag Heard Hop Instant Json Leg METHODS MediaEvent Outcome RecordEnded Recording Redirects Refused
  RelayInput Role Rule Scope Sdp ServiceType Settings Shared SipUri SrtpKeys Standing Step Subject Target
  TlsVerification Transport TrunkFacts Verdict Window alerts audit begin calls carryOut check clientOf conferences cut
  dueMinor enqueue events exports fingerprintOf flag gone invitations invite list listNodes liveCalls mediaType
  members nameOf next number numberImports numbers on oneOf optional outcomeOf pageOf pageSchema parameter pause
  presentCall presentPolicy presentRecording projects queues read readBody readStatement recordingParameters
  recordings redirect refusalOf refuse remoteOf rfc2822 route soundOf start startRecording tell text textOf trunkTests
  usage within
  `
    .trim()
    .split(/\s+/),
)

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
