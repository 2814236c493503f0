"""What each dataset is, how large, under which licence, and the message that says so when it is not there."""

from dataclasses import dataclass, replace
from pathlib import Path

from lib import paths
from lib.errors import MissingDataset


@dataclass(frozen=True)
class Archive:
    """A file to download: address, name, and checksum as ``algorithm:digits``, None where nobody states one."""

    url: str
    name: str
    checksum: str | None


@dataclass(frozen=True)
class Facts:
    """What a reader has to know about a dataset before using it; ``size`` is that of the download."""

    title: str
    layout: str
    images: int | None = None
    size: str = ""
    gigabytes: float = 0.0
    licence: str = ""
    doi: str = ""
    citation: str = ""
    magnifications: tuple[str, ...] = ()
    files: tuple[Archive, ...] = ()
    page: str = ""
    """Where to download it by hand, if no file has an address that stays."""
    pictures: str | None = None
    """What has to stand below its images where they are published; None: they are not published."""

    def summary(self) -> str:
        """Return title, number of images, size, licence, citation and DOI in one line, without what is empty."""
        images = f"{self.images:,} images" if self.images else ""
        doi = f"doi {self.doi}" if self.doi else ""
        return ", ".join(filter(None, (self.title, images, self.size, self.licence, self.citation, doi)))


DATAVERSE = "https://dataverse.harvard.edu/api/access/datafile"

BREAKHIS = Facts(
    title="BreakHis breast tumours",
    layout="images named like SOB_B_A-14-22549AB-100-027.png, in any folders",
    images=7909,
    size="about 4 GB for all magnifications",
    gigabytes=4.3,
    licence="commonly given as CC BY 4.0, check before redistribution",
    doi="10.1109/TBME.2015.2496264",
    citation="Spanhol et al. 2016",
    magnifications=("40X", "100X", "200X", "400X"),
    files=(Archive("http://www.inf.ufpr.br/vri/databases/BreaKHis_v1.tar.gz", "BreaKHis_v1.tar.gz", None),),
)

TILES = Facts(
    title="procedural H&E-like tiles",
    layout="table.csv and the tiles that it lists",
    licence="no licence needed",
    pictures="",
)

# The paper treats each magnification of BreakHis as a dataset of its own: bh40x, bh100x, bh200x, bh400x.
DATASETS: dict[str, Facts] = {
    "tissue": TILES,
    **{name: replace(TILES, title=f"{TILES.title} at {name.rpartition('_')[2].upper()}") for name in paths.DRAWN[1:]},
    "kather": Facts(
        title="Kather 2016",
        layout="folders 01_TUMOR … 08_EMPTY with .tif tiles",
        images=5000,
        size="about 246 MB",
        gigabytes=0.25,
        licence="CC BY 4.0",
        doi="10.5281/zenodo.53169",
        files=(
            Archive(
                "https://zenodo.org/records/53169/files/Kather_texture_2016_image_tiles_5000.zip",
                "Kather_texture_2016_image_tiles_5000.zip",
                "sha384:7d86abe1d04e68b77c055820c2a4c582a1d25d2983e38ab724e"
                "ac75affce8b7cb2cbf5ba68848dcfd9d84005d87d6790",
            ),
        ),
        citation="Kather et al. 2016",
        pictures="Tiles: Kather et al. 2016, doi 10.5281/zenodo.53169, CC BY 4.0 "
        "(https://creativecommons.org/licenses/by/4.0/), made smaller.",
    ),
    "breakhis": BREAKHIS,
    **{
        f"bh{magnification.lower()}": replace(BREAKHIS, title=f"BreakHis at {magnification}", images=images)
        for magnification, images in {"40X": 1995, "100X": 2081, "200X": 2013, "400X": 1820}.items()
    },
    "ham10000": Facts(
        title="HAM10000",
        layout="HAM10000_metadata.csv and images named like ISIC_0027419.jpg, in any folders",
        images=10015,
        size="about 2.8 GB",
        gigabytes=2.8,
        licence="CC BY-NC 4.0",
        doi="10.7910/DVN/DBW86T",
        files=(
            Archive(
                f"{DATAVERSE}/4338392?format=original",
                "HAM10000_metadata.csv",
                "md5:8f85fb1aa29d80a2797247e434deb79d",
            ),
            Archive(f"{DATAVERSE}/3172585", "HAM10000_images_part_1.zip", "md5:4639bfa73ab251610530a97c898e6e46"),
            Archive(f"{DATAVERSE}/3172584", "HAM10000_images_part_2.zip", "md5:da43d6cc50f6613013be07e8986b384b"),
        ),
        citation="Tschandl et al. 2018",
    ),
    "odir": Facts(
        title="ODIR-5K fundus photographs",
        layout="full_df.csv and images named like 12_left.jpg, in any folders",
        images=6392,
        size="about 2 GB",
        gigabytes=2.0,
        licence="released for a challenge without a licence, research only",
        doi="10.1007/978-3-030-71058-3_11",
        citation="Li et al. 2021",
        page="https://www.kaggle.com/datasets/andrewmvd/ocular-disease-recognition-odir5k",
    ),
    "ovarian": Facts(
        title="ovarian cancer subtypes",
        layout="folders Clear_Cell, Endometri, Mucinous, Non_Cancerous and Serous with images",
        images=498,
        licence="licence as stated on its page",
        doi="10.17632/kztymsrjx9.1",
        citation="Kasture 2021",
        page="https://data.mendeley.com/datasets/kztymsrjx9/1",
    ),
    "cub": Facts(
        title="CUB-200-2011 birds",
        layout="images/<species>/ with .jpg photos",
        images=11788,
        size="about 1.2 GB",
        gigabytes=1.2,
        licence="research use, photos belong to their authors",
        citation="Wah et al. 2011",
        page="https://www.vision.caltech.edu/datasets/cub_200_2011/",
    ),
    "cars": Facts(
        title="Cars-196",
        layout="cars_annos.mat and car_ims/; or cars_train/ and cars_test/, and cars_train_annos.mat, "
        "cars_test_annos_withlabels.mat and cars_meta.mat",
        images=16185,
        size="about 2 GB",
        gigabytes=2.0,
        licence="research use, check before redistribution",
        citation="Krause et al. 2013",
        # Its own page is gone; this one says so, and where copies are.
        page="https://pytorch.org/vision/stable/generated/torchvision.datasets.StanfordCars.html",
    ),
    "sop": Facts(
        title="Stanford Online Products",
        layout="Ebay_train.txt, Ebay_test.txt and the folders beside them",
        images=120053,
        size="about 3 GB",
        gigabytes=3.1,
        licence="research use, check before redistribution",
        citation="Oh Song et al. 2016",
        page="https://cvgl.stanford.edu/projects/lifted_struct/",
    ),
    "in_shop": Facts(
        title="In-Shop Clothes Retrieval of DeepFashion",
        layout="Eval/list_eval_partition.txt and img/",
        images=52712,
        licence="released under an agreement, for research that is not commercial",
        citation="Liu et al. 2016",
        page="http://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html",
    ),
    "inaturalist": Facts(
        title="iNaturalist 2018",
        layout="train2018.json, val2018.json, categories.json and train_val2018/",
        images=461939,
        size="about 120 GB",
        gigabytes=120.0,
        licence="research that is not commercial, photos belong to their authors",
        citation="Van Horn et al. 2018",
        page="https://github.com/visipedia/inat_comp/tree/master/2018",
    ),
    "bps": Facts(
        title="BPS: patches of BCSS and Lizard",
        layout="class folders tumor, Stroma, Inflammatory, Necrosis, Fat and gland with patches. Those of ACIR are not "
        "published; cut some: python -m lib.datasets.cutting --bcss <BCSS> --lizard <Lizard> --target data/bps",
        images=18678,
        licence="commonly given as CC0 1.0 (BCSS) and CC BY-NC-SA 4.0 (Lizard), check before redistribution",
        doi="10.1093/bioinformatics/btz083",
        citation="Amgad et al. 2019, Graham et al. 2021",
        page="https://github.com/PathologyDataScience/BCSS",
    ),
    "radin_ct": Facts(
        title="RadIN-CT: CT of RadImageNet",
        layout="RadiologyAI_train.csv, RadiologyAI_val.csv, RadiologyAI_test.csv and the folder radiology_ai; or the "
        "class folders abd_normal_ct … uterine_pathology_ct",
        images=29833,
        licence="given on request by its authors, for research, check before redistribution",
        doi="10.1148/ryai.210315",
        citation="Mei et al. 2022",
        page="https://www.radimagenet.com/",
    ),
    "chest_xray": Facts(
        title="chest radiographs",
        layout="folders normal and pneumonia with images named like IM-0001-0001.jpeg and person1_virus_6.jpeg",
        images=5856,
        size="about 1.2 GB",
        gigabytes=1.2,
        licence="CC BY 4.0",
        doi="10.17632/rscbjbr9sj.2",
        citation="Kermany et al. 2018",
        page="https://data.mendeley.com/datasets/rscbjbr9sj/2",
    ),
    "folder": Facts(
        title="your own images",
        layout="one sub-folder per class with .png, .jpg, .tif, .bmp or .webp images",
    ),
}

PRIVATE = {
    "glomerulus": "glomerulus is a private collection of the authors of the paper about linear prototypes (7,582 "
    "training and 116 test images of six classes): there is nothing to load, only the paper's own numbers are shown."
}


def facts(name: str) -> Facts:
    """Return the facts of a known dataset; under any other name they are those of your own images.

    >>> facts("kather").title, facts("birds").title
    ('Kather 2016', 'birds, your own images')
    """
    return DATASETS.get(name) or replace(DATASETS["folder"], title=f"{name}, your own images")


def missing(name: str, root: Path, why: str, profile: str = "sample") -> MissingDataset:
    """Return the error for dataset `name` that was looked for in `root`; `why` completes the sentence after it.

    profile: the one that would use it.
    """
    what = facts(name)
    way_out = (
        f"Use your copy: put it into data/{name} in the project folder, "
        f"or run: make {'gpu' if profile == 'gpu' else f'reproduce PROFILE={profile}'} DATA=<folder that holds it>"
    )
    if name in paths.DRAWN:
        way_out = "Draw it with: make reproduce"
    elif what.files:
        way_out = f"Download it: make data NAME={'breakhis' if what.magnifications else name}\n  {way_out}"
    elif what.page:
        way_out = f"Download it by hand: {what.page}\n  {way_out}"
    return MissingDataset(
        f"needs {name}: {root} {why}.\n  What: {what.summary()}.\n  Expected: {what.layout}.\n  {way_out}"
    )
