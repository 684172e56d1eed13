// The bill of materials (CycloneDX 1.5, https://cyclonedx.org/docs/1.5/json/) and the licences of what a release ships.
import { nameOf, production } from './contents.mjs'

/** Licences that the packages state in their files alone, read by a person. */
const STATED = { only: 'MIT', 'png-js': 'MIT' }
const licenceOf = (path, { license }) => license ?? STATED[nameOf(path)]

const hexOf = integrity => Buffer.from(integrity.replace(/^sha512-/, ''), 'base64').toString('hex')
const purl = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`

const component = (name, { version, integrity, license }) => ({
  type: 'library',
  'bom-ref': purl(name, version),
  name,
  version,
  hashes: [{ alg: 'SHA-512', content: hexOf(integrity) }],
  licenses: [/ (OR|AND|WITH) /.test(license) ? { expression: license } : { license: { id: license } }],
  purl: purl(name, version),
})

/** Returns the document. `runtime` is scripts/release/runtime.json, `system` the Debian packages that are needed. */
export function billOfMaterials({ manifest, lock, runtime, system, time }) {
  const packages = production(lock).map(([path, entry]) =>
    component(nameOf(path), { ...entry, license: licenceOf(path, entry) }),
  )
  const node = component(runtime.package, { ...runtime, license: runtime.licence })
  const debian = system.map(name => ({
    type: 'library',
    'bom-ref': `pkg:deb/debian/${name}`,
    name,
    purl: `pkg:deb/debian/${name}`,
  }))
  const unique = new Map([...packages, node, ...debian].map(one => [one['bom-ref'], one]))
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      timestamp: time,
      component: {
        type: 'application',
        name: manifest.name,
        version: manifest.version,
        licenses: [{ license: { id: manifest.license } }],
      },
    },
    components: [...unique.values()].sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1)),
  }
}

/** Returns a sentence for each package without a licence, or with one that asks for more than to ship its text. */
export function licenceFindings(lock) {
  const fine =
    /^(MIT(-0)?|ISC|BSD-[23]-Clause|0BSD|Apache-2\.0|CC0-1\.0|BlueOak-1\.0\.0|Unlicense|MPL-2\.0|Python-2\.0)$/
  return production(lock).flatMap(([path, entry]) => {
    const license = licenceOf(path, entry)
    const options = (license ?? 'none').replace(/[()]/g, '').split(' OR ')
    const taken = options.some(option => option.split(' AND ').every(one => fine.test(one.trim())))
    return taken ? [] : [`${path}: the licence ${license ?? 'is missing'}`]
  })
}
