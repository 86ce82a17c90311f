// Screenshots of each page of a demo: at a desk and on a phone, in both themes; and nothing that axe calls serious.
import { accessible, check, expect, finish, fits, launch, origin, person, setUp } from './stage.mjs';

const PAGES = {
  home: 'home', inbox: 'inbox', containers: 'containers', container: 'containers/jellyfin',
  docker: 'containers/docker%3Aimmich', agents: 'agents', activity: 'activity',
};
const SIZES = { desk: { width: 1280, height: 800 }, phone: { width: 360, height: 740 } };

// Only what the window shows: pictures of one size, with the bar of a phone where a thumb finds it.
async function pictures(page, name) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: `${process.env.GATEWREN_SHOTS}/demo-${name}-${colorScheme}.png` });
  }
  await page.emulateMedia({ colorScheme: null });
}

const browser = await launch();
const { context, page } = await person(browser, { viewport: SIZES.desk });
await check('demo', 'the owner signs in, and a bar names the demo', async () => {
  await setUp(page);
  await page.getByText('Demo: nothing here is real.').waitFor();
});
for (const [name, path] of Object.entries(PAGES)) {
  await check('demo', `${name} is full, and looks alike at each size and in each theme`, async () => {
    for (const [size, viewport] of Object.entries(SIZES)) {
      await page.setViewportSize(viewport);
      await page.goto(`${origin}/owner/${path}`);
      const main = await page.textContent('main');
      expect(main.length > 400, main);
      await fits(page);
      await accessible(page);
      await pictures(page, `${name}-${size}`);
    }
  });
}
await check('demo', 'an agent has a page with its week and its permissions', async () => {
  await page.setViewportSize(SIZES.desk);
  await page.goto(`${origin}/owner/agents`);
  await page.getByRole('link', { name: 'claude-laptop' }).first().click();
  await accessible(page);
  await pictures(page, 'agent-desk');
});
await check('demo', 'an approved request is not run, and the reason is shown', async () => {
  await page.goto(`${origin}/owner/inbox`);
  const card = page.locator('article', { hasText: 'docker:paperless' });
  await card.getByRole('button', { name: 'Approve', exact: true }).click();
  await page.getByText('this is a demo', { exact: false }).first().waitFor();
});
await context.close();
await browser.close();
finish();
