// `npm run examples`: records the examples of the OpenAPI document again.
import { writeFileSync } from 'node:fs'
import { OPERATOR_ROUTES } from '../../../../control/operator/index.ts'
import { V1_ROUTES } from '../../../../control/v1/index.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import { record, recordOperator } from '../examples.ts'
import { kitchenOf } from '../operator-recipes.ts'
import { nameOf } from '../recipes.ts'

const ends: (() => unknown)[] = []
const w = await controlPlane({ teardown: end => void ends.push(end) })
const save = (name: string, examples: object): void =>
  writeFileSync(
    new URL(`../../../../../control/openapi/${name}.json`, import.meta.url),
    JSON.stringify(examples, null, 2),
  )
const examples: Record<string, unknown> = {}
for (const route of V1_ROUTES) examples[nameOf(route)] = await record(w, route)
save('examples', examples)
// What the examples above have made would show in those of operators.
const kitchen = await kitchenOf(await controlPlane({ teardown: end => void ends.push(end) }), 'Operator')
const operators: Record<string, unknown> = {}
for (const route of OPERATOR_ROUTES) operators[nameOf(route)] = await recordOperator(kitchen, route)
save('operator-examples', operators)
for (const end of ends.reverse()) await end()
