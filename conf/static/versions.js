// The versions beside this one, the newest first. src/gradspec_lab/site/publish.py writes this file anew in each version's folder.
globalThis.siteVersions = [];
