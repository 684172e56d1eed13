export * from './figures.ts'
export { ONE_WAY_SECONDS } from './media.ts'
export * from './present.ts'
export * from './steps.ts'
