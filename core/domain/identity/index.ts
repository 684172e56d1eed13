export * from './address.ts'
export * from './caller.ts'
export * from './identify.ts'
export * from './sources.ts'
