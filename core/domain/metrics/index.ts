export * from './carrier-media.ts'
export * from './figures.ts'
export * from './present.ts'
export * from './steps.ts'
