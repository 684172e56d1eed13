import { useState } from 'preact/hooks'
import world from 'world-atlas/countries-110m.json'
import type { DestinationCountry } from '../lib/api-types.ts'
import { bandsOf, type RatedCountry } from '../lib/country-rates.ts'
import { count, money } from '../lib/format.ts'
import './world-map.css'

const MOST_BANDS = 4

interface WorldMapProps {
  readonly countries: readonly RatedCountry[]
  /** Whether a country is among those that are looked for. */
  readonly wanted: (country: DestinationCountry) => boolean
  /** Says a rate in words. */
  readonly textOf: (rate: RatedCountry['rate']) => string
  readonly onPick: (country: DestinationCountry) => void
}

/** The countries by what a minute to them costs. The list below it has the same for the keyboard. */
export function WorldMap({ countries, wanted, textOf, onPick }: WorldMapProps) {
  const [over, setOver] = useState<string | null>(null)
  const known = new Map(countries.map(rated => [rated.country.iso_code, rated]))
  const covered = countries.flatMap(({ rate }) => (rate === null ? [] : [rate.low_minor]))
  const bands = bandsOf(covered, MOST_BANDS)
  const classOf = (iso_code: string | null): string => {
    const rated = known.get(iso_code ?? '')
    if (!rated) return 'land'
    const band = rated.rate === null ? 'none' : `band-${bands.findIndex(end => (rated.rate?.low_minor ?? 0) <= end)}`
    return `country ${band} ${wanted(rated.country) ? '' : 'unwanted'}`
  }
  const of = (event: Event) => known.get((event.target as Element).getAttribute('data-country') ?? '')
  const shown = known.get(over ?? '')
  const told = ({ country, rate }: RatedCountry): string =>
    `${country.name}, +${country.calling_code}: ${textOf(rate)}${rate === null ? '' : ' a minute'}`
  return (
    <figure class="stack world">
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the list below finds each country by the keyboard. */}
      <svg
        viewBox={`0 0 ${world.width} ${world.height}`}
        role="img"
        aria-label={`World map: ${count(covered.length)} of ${count(countries.length)} countries and territories are covered`}
        onPointerOver={event => setOver(of(event)?.country.iso_code ?? null)}
        onPointerLeave={() => setOver(null)}
        onClick={event => {
          const picked = of(event)
          if (picked) onPick(picked.country)
        }}
      >
        {world.shapes.map(([iso_code, path]) => (
          <path
            key={path}
            d={path}
            class={classOf(iso_code)}
            data-country={known.has(iso_code ?? '') ? iso_code : null}
          />
        ))}
      </svg>
      <figcaption class="chart-legend">
        {bands.map((end, band) => (
          <span key={end}>
            <i class={`band-${band}`} />
            {bands.length > 1 && 'up to '}
            {money(end)}
          </span>
        ))}
        <span>
          <i class="none" />
          Not covered
        </span>
        <span data-over>
          {shown ? told(shown) : 'A minute, from the cheapest prefix on. Small territories are in the list.'}
        </span>
      </figcaption>
    </figure>
  )
}
