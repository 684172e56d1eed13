// `npm run examples`: records the examples of the OpenAPI document again.
import { writeFileSync } from 'node:fs'
import { V1_ROUTES } from '../../../../control/v1/index.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import { record } from '../examples.ts'
import { nameOf } from '../recipes.ts'

const ends: (() => unknown)[] = []
const w = await controlPlane({ teardown: end => void ends.push(end) })
const examples: Record<string, unknown> = {}
for (const route of V1_ROUTES) examples[nameOf(route)] = await record(w, route)
writeFileSync(
  new URL('../../../../../control/openapi/examples.json', import.meta.url),
  JSON.stringify(examples, null, 2),
)
for (const end of ends.reverse()) await end()
