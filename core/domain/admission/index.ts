export * from './admit.ts'
export * from './affordable.ts'
export type * from './types.ts'
export * from './ways.ts'
