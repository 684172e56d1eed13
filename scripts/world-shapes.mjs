import { createRequire } from 'node:module'
import { geoNaturalEarth1, geoPath } from 'd3-geo'
import { feature } from 'topojson-client'

const world = createRequire(import.meta.url)('world-atlas/countries-110m.json')
const WIDTH = 960
const ANTARCTICA = '010'
/** ISO 3166 gives Kosovo no code; telephone numbering uses XK. */
const KOSOVO = { name: 'Kosovo', iso_code: 'XK' }

/** Returns the ISO 3166 code of a shape, which has the number of ISO 3166: 566 is NG. Null for land without a code. */
function codeOf({ id, properties }) {
  if (id === undefined) return properties.name === KOSOVO.name ? KOSOVO.iso_code : null
  const region = new Intl.Locale(Intl.getCanonicalLocales(`und-${id}`)[0]).region
  return /^[A-Z]{2}$/.test(region) ? region : null
}

/**
 * Returns the countries of Natural Earth (public domain) as paths of an SVG, in whole pixels: the page needs neither
 * the shapes on the globe nor what projects them. Nobody calls Antarctica.
 */
export function worldShapes() {
  const countries = feature(world, world.objects.countries)
  const features = countries.features.filter(({ id }) => id !== ANTARCTICA)
  const projection = geoNaturalEarth1().fitWidth(WIDTH, { type: 'FeatureCollection', features })
  const path = geoPath(projection)
  const [, [width, height]] = path.bounds({ type: 'FeatureCollection', features })
  const outline = path.digits(0)
  return {
    width: Math.ceil(width),
    height: Math.ceil(height),
    shapes: features.map(shape => [codeOf(shape), outline(shape)]),
  }
}
