export * from './admit.ts'
export * from './affordable.ts'
export * from './types.ts'
export * from './ways.ts'
