export * from './projections.ts'
export * from './table.ts'
