// How a TypeScript client's checks are counted: a line each, and the exit status.
export const NAME = process.env.GATEWREN_CLIENT;
let failed = false;

export function expect(truth, why) {
  if (!truth) throw new Error(typeof why === 'string' ? why : JSON.stringify(why));
}

export async function check(what, run) {
  try {
    await run();
    console.log(`ok ${NAME} ${what}`);
  } catch (error) {
    failed = true;
    console.log(`not ok ${NAME} ${what}: ${words(error)}`);
  }
}

// Ends the process: an open stream must not keep it.
export function finish(why) {
  if (why) console.log(`not ok ${NAME} comes to its end: ${why}`);
  process.exit(failed || why ? 1 : 0);
}

function words(error) {
  const cause = error?.cause ? ` (${error.cause.message ?? error.cause})` : '';
  return `${error?.message ?? error}${cause}`.replaceAll(/\s+/g, ' ');
}
