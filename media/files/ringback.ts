import type { PlayPiece } from '../../native/index.ts'

/**
 * Ring-back tones by country: ITU-T E.180 Supplement 2, "Various tones used in national networks".
 * A cadence is a list of on and off times in milliseconds.
 */
interface Ringback {
  readonly hz: readonly number[]
  readonly cadence_ms: readonly number[]
}

const tone = (hz: readonly number[], ...cadence_ms: number[]): Ringback => ({ hz, cadence_ms })

const NORTH_AMERICA = tone([440, 480], 2000, 4000)
const BRITISH = tone([400, 450], 400, 200, 400, 2000)
/** The common European tone, also used for an unknown country. */
const EUROPEAN = tone([425], 1000, 4000)

const RINGBACK: Readonly<Record<string, Ringback>> = {
  ae: BRITISH,
  ar: EUROPEAN,
  at: tone([420], 1000, 5000),
  au: tone([400, 450], 400, 200, 400, 2000),
  be: tone([425], 1000, 3000),
  bg: EUROPEAN,
  br: EUROPEAN,
  ca: NORTH_AMERICA,
  ch: EUROPEAN,
  cl: tone([400], 1000, 3000),
  cn: tone([450], 1000, 4000),
  cy: tone([425], 1500, 3000),
  cz: EUROPEAN,
  de: EUROPEAN,
  dk: EUROPEAN,
  ee: EUROPEAN,
  eg: tone([425], 2000, 1000),
  es: tone([425], 1500, 3000),
  fi: EUROPEAN,
  fr: tone([440], 1500, 3500),
  gb: BRITISH,
  gh: tone([400, 450], 400, 200, 400, 2000),
  gr: EUROPEAN,
  hk: tone([440, 480], 400, 200, 400, 3000),
  hu: tone([425], 1250, 3750),
  ie: BRITISH,
  il: tone([400], 1000, 3000),
  in: tone([400, 425], 400, 200, 400, 2000),
  it: EUROPEAN,
  jp: tone([400], 1000, 2000),
  ke: tone([425], 670, 3000, 1500, 5000),
  kr: tone([440, 480], 1000, 2000),
  lt: EUROPEAN,
  lv: EUROPEAN,
  mx: EUROPEAN,
  my: tone([425], 400, 200, 400, 2000),
  ng: EUROPEAN,
  nl: EUROPEAN,
  no: EUROPEAN,
  nz: tone([400, 450], 400, 200, 400, 2000),
  ph: tone([425, 480], 1000, 4000),
  pl: EUROPEAN,
  pt: tone([425], 1000, 5000),
  ro: tone([425], 1850, 4150),
  ru: tone([425], 800, 3200),
  se: tone([425], 1000, 5000),
  sg: tone([425], 400, 200, 400, 2000),
  th: tone([420], 1000, 5000),
  tr: tone([450], 2000, 4000),
  tw: tone([440, 480], 1000, 2000),
  tz: EUROPEAN,
  ug: EUROPEAN,
  us: NORTH_AMERICA,
  'us-old': tone([420], 2000, 4000),
  ve: tone([425], 1000, 4000),
  za: tone([400, 433], 400, 200, 400, 2000),
}

const SAME: Readonly<Record<string, string>> = { uk: 'gb' }

/** Returns one cycle of the country's cadence. Repeated, it is the ring-back tone. */
export function ringbackPieces(country: string): PlayPiece[] {
  const code = country.toLowerCase()
  const { hz, cadence_ms } = RINGBACK[SAME[code] ?? code] ?? EUROPEAN
  const pieces: PlayPiece[] = []
  for (let at = 0; at < cadence_ms.length; at += 2) {
    const on_ms = cadence_ms[at] ?? 0
    const off_ms = cadence_ms[at + 1] ?? 0
    // Each of two frequencies is 3 dB lower, so that together they have the level of one.
    pieces.push({ kind: 'tone', hz, on_ms, off_ms, total_ms: on_ms + off_ms, level_dbm0: hz.length > 1 ? -19 : -16 })
  }
  return pieces
}
