/**
 * The seed of everything that tests draw. It is the same in each run, so that no run fails by chance; `TEST_SEED=7 npm
 * test -- test/unit/core` draws others.
 */
export const SEED = Number(process.env['TEST_SEED'] ?? 20_261_126)
