export { type Element, type Ssml, ssml } from './element.ts'
export * from './elements.ts'
export { type RelayHandlers, type RelaySession, type RelaySetup, type RelaySocket, relay } from './relay.ts'
export { type SignedRequest, verifyHandshake, verifyRequest } from './signature.ts'
