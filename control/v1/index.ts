import { projects } from './projects.ts'
import { trunks } from './trunks.ts'

/** Every endpoint of /v1, in the order of the reference. */
export const V1_ROUTES = [...projects, ...trunks]
