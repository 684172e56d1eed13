import { getCountries, getCountryCallingCode } from 'libphonenumber-js/max'

type Continent = 'africa' | 'americas' | 'asia' | 'europe' | 'oceania'

/** A country or territory that a destination rule may name. */
interface DestinationCountry {
  readonly iso_code: string
  readonly name: string
  readonly calling_code: string
  readonly continent: Continent
  /** Whether another country shares the calling code, so that a rule would match both. */
  readonly shared_code: boolean
}

const ISO_BY_CONTINENT: Readonly<Record<Exclude<Continent, 'americas'>, string>> = {
  africa:
    'AC AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW IO KE KM LR LS LY MA MG ML ' +
    'MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TA TD TG TN TZ UG YT ZA ZM ZW',
  asia:
    'AE AF AM AZ BD BH BN BT CN CY GE HK ID IL IN IQ IR JO JP KG KH KP KR KW KZ LA LB LK MM MN MO MV MY ' +
    'NP OM PH PK PS QA SA SG SY TH TJ TL TM TR TW UZ VN YE',
  europe:
    'AD AL AT AX BA BE BG BY CH CZ DE DK EE ES FI FO FR GB GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC ' +
    'MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK',
  oceania: 'AS AU CC CK CX FJ FM GU KI MH MP NC NF NR NU NZ PF PG PW SB TK TO TV VU WF WS',
}

function continentOf(iso: string): Continent {
  for (const continent of ['africa', 'asia', 'europe', 'oceania'] as const)
    if (ISO_BY_CONTINENT[continent].split(' ').includes(iso)) return continent
  return 'americas'
}

function compile(): ReadonlyMap<string, DestinationCountry> {
  const codes = getCountries()
  const reached = new Map<string, number>()
  for (const iso of codes) {
    const code = getCountryCallingCode(iso)
    reached.set(code, (reached.get(code) ?? 0) + 1)
  }
  const names = new Intl.DisplayNames('en', { type: 'region' })
  return new Map(
    codes.map(iso => {
      const calling_code = getCountryCallingCode(iso) as string
      const shared_code = (reached.get(calling_code) ?? 0) > 1
      const country = {
        iso_code: iso,
        name: names.of(iso) ?? iso,
        calling_code,
        continent: continentOf(iso),
        shared_code,
      }
      return [iso as string, country]
    }),
  )
}

let compiled: ReadonlyMap<string, DestinationCountry> | null = null

/** Compiled at the first use: most commands and threads name no country. */
function countries(): ReadonlyMap<string, DestinationCountry> {
  compiled ??= compile()
  return compiled
}

/** Lists every country, ordered by ISO code. */
export const destinationCountries = (): readonly DestinationCountry[] =>
  [...countries().values()].sort((a, b) => (a.iso_code < b.iso_code ? -1 : 1))

export const findCountry = (iso_code: string): DestinationCountry | undefined => countries().get(iso_code.toUpperCase())
