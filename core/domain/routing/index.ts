export * from './egress.ts'
export * from './order.ts'
export * from './outcome.ts'
export * from './registration.ts'
