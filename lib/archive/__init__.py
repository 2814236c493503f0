"""An archive that can be asked: images, their codes, the head that made these, and thumbnails, in one folder.

``make archive DATA=my_tiles`` builds one and ``make ask IMAGE=new_tile.png`` asks it. From Python::

    from lib.archive.archive import Archive

    archive = Archive.load("archive/my_tiles")
    answer = archive.ask("new_tile.png", k=20, leave_out="patient_07", only=["carcinoma", "normal"])
    print(answer.neighbours, answer.votes, answer.accuracy, answer.unlike)

    ids = archive.add(["new_tile.png"], ["normal"], ["patient_12"])
    archive.remove(ids)
    archive.save()

After ``remove`` and ``save`` no file of the archive has the vector, the features, the thumbnail or the name of what was
removed. The cache of features behind it has none either, nor has ``<archive>-yes-and-no.csv`` a line on it. Not touched
are, and you may want to see to them:

* the image itself in your folder;
* pictures of earlier answers (``<archive>.asked``), and exported pages (``<archive>.page``): export them again;
* what ``make reproduce`` keeps of your images: features, tables and heads below ``build/`` (``build/trained``), and
  ``reports/``;
* what a head has learnt from the image, and what was measured with it: build the archive anew for one without.

It is a tool for research, not a medical device.
"""
