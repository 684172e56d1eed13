import { digestCredentials } from './digest-credentials.ts'
import { ipCredentials } from './ip-credentials.ts'
import { projects } from './projects.ts'
import { terminationUris } from './termination-uris.ts'
import { trunks } from './trunks.ts'

/** Every endpoint of /v1, in the order of the reference. */
export const V1_ROUTES = [...projects, ...trunks, ...ipCredentials, ...digestCredentials, ...terminationUris]
